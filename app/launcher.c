/* The program of the tarball: starts the real one with the C library and the other libraries that lie beside
 * it, so that it runs whatever the system has of them. Linked statically. */

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void fail(const char* what, const char* why) {
  fprintf(stderr, "verbatim: cannot start %s: %s\n", what, why);
  exit(3);
}

int main(int argc, char** argv) {
  static char self[PATH_MAX];
  static char loader[PATH_MAX + 64], libraries[PATH_MAX + 64], program[PATH_MAX + 64];
  /* Without /proc the name by which it was called has to do. */
  if (readlink("/proc/self/exe", self, sizeof self - 1) < 0 && realpath(argv[0], self) == NULL) {
    fail(argv[0], strerror(errno));
  }
  const char* const root = dirname(dirname(self));
  snprintf(loader, sizeof loader, "%s/lib/ld-linux-x86-64.so.2", root);
  snprintf(libraries, sizeof libraries, "%s/lib", root);
  snprintf(program, sizeof program, "%s/lib/verbatim", root);
  char** const arguments = calloc((size_t)argc + 8, sizeof *arguments);
  if (arguments == NULL) fail(program, strerror(errno));
  char* const before[] = {loader,    "--inhibit-cache", "--library-path", libraries,
                          "--argv0", argv[0],           program};
  const size_t count = sizeof before / sizeof *before;
  memcpy(arguments, before, sizeof before);
  for (int i = 1; i < argc; ++i) arguments[count + (size_t)i - 1] = argv[i];
  execv(loader, arguments);
  fail(loader, strerror(errno));
}
