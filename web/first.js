// Runs before the page is drawn, so that a theme other than the system's is there from the first picture on.
try {
  const theme = JSON.parse(localStorage.getItem("verbatim.settings"))?.theme;
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // Nothing is remembered, and the system's theme holds.
}
