// Numbers and times, formatted for people.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { maximumSignificantDigits: 2 });
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });

export const number = (value) => whole.format(value);
/** Rounded where the full number is long. */
export const about = (value) => (Math.abs(value) < 10 ? short : Math.abs(value) < 1e5 ? whole : compact).format(value);

/** 1 KB is 1024 bytes, as everywhere in Headgate. */
export function bytes(size) {
  const [unit, name] = [[2 ** 30, "GB"], [2 ** 20, "MB"]].find(([least]) => size >= least) ?? [2 ** 10, "KB"];
  return `${about(size / unit)} ${name}`;
}

export function share(part, of) {
  if (!of) return "";
  const percent = (100 * part) / of;
  if (part && percent < 0.01) return "< 0.01 %";
  return `${short.format(percent)} %`;
}

/** A duration, rounded to one unit. */
export function span(seconds) {
  const size = Math.max(0, seconds);
  for (const [unit, name] of [[86400, "d"], [3600, "h"], [60, "min"]]) {
    if (size >= 2 * unit) return `${whole.format(size / unit)} ${name}`;
  }
  return size < 10 ? `${short.format(size)} s` : `${whole.format(size)} s`;
}

export const since = (then, now) => (now - Date.parse(then)) / 1000;
export const ago = (then, now) => `${span(since(then, now))} ago`;

/** A time in UTC, written as tables and logs write it. */
export const moment = (time) => new Date(time).toISOString().replace("T", " ").slice(0, 19) + "Z";

export function clock(time, now) {
  const text = moment(time);
  return text.slice(0, 10) === moment(now).slice(0, 10) ? text.slice(11) : text;
}

export const plural = (count, one, many) => `${number(count)} ${count === 1 ? one : many}`;
