/**
 * Keeps the end of a box that scrolls in sight while its content grows, until the reader scrolls away from it.
 * `sentinel` is the last element in the box. Returns a function to call after the content has grown; given true, it
 * goes to the end wherever the reader is.
 */
export function keepEndInSight(box, sentinel) {
  let atEnd = true;
  new IntersectionObserver((entries) => {
    atEnd = entries.at(-1).isIntersecting;
  }, { root: box, rootMargin: "0px 0px 96px 0px" }).observe(sentinel);
  return (always = false) => {
    if (always) atEnd = true;
    if (atEnd) box.scrollTop = box.scrollHeight;
  };
}
