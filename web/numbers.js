const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/** A count, with its thousands apart. */
export function count(value) {
  return whole.format(value);
}

/** A count and the thing that is counted, in the plural unless there is one. */
export function counted(value, noun, plural = `${noun}s`) {
  return `${count(value)} ${value === 1 ? noun : plural}`;
}

/** A share between 0 and 1 in percent. */
export function percent(share) {
  const value = share * 100;
  return `${value > 99 && value < 100 ? value.toFixed(1) : value.toFixed(0)} %`;
}

/** A speed in tokens per second, with a digit after the point where that says something. */
export function speed(tokensPerSecond) {
  return tokensPerSecond >= 100 ? count(tokensPerSecond) : tokensPerSecond.toFixed(1);
}

/** A time in seconds, in the unit that suits it. */
export function duration(seconds) {
  if (seconds < 0.0995) return `${(seconds * 1000).toFixed(seconds < 0.00995 ? 1 : 0)} ms`;
  return seconds < 60 ? `${seconds.toFixed(2)} s` : `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

/** A number of bytes in the unit that suits it. */
export function bytes(value) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  let shown = value;
  for (; shown >= 999.5 && unit < units.length - 1; unit += 1) shown /= 1000;
  return `${unit === 0 || shown >= 100 ? shown.toFixed(0) : shown.toFixed(1)} ${units[unit]}`;
}

/** How many times as much one number is as another. */
export function times(ratio) {
  return `${ratio.toFixed(2)}×`;
}
