import { chromium } from "playwright-core";

/** Starts the Chromium of the system without a window, with a new profile that is removed with it. */
export function openBrowser() {
  return chromium.launch({
    executablePath: process.env.VERBATIM_CHROMIUM ?? "/usr/bin/chromium",
    headless: true,
    args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
      "--disable-component-update", "--disable-sync"],
  });
}
