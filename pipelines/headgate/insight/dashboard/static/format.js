// Numbers and times as a person reads them. All times are UTC.

const WHOLE = new Intl.NumberFormat("en");
const CENTS = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });
const FINE = new Intl.NumberFormat("en", { maximumSignificantDigits: 6 });
const PERCENT = new Intl.NumberFormat("en", { style: "percent", maximumFractionDigits: 2 });

const whole = (value) => (Number.isSafeInteger(value) ? WHOLE.format(value) : `≈ ${WHOLE.format(value)}`);
export const count = (value) => (value === null || value === undefined ? "–" : whole(value));
export const percent = (value) => (value === null || value === undefined ? "–" : PERCENT.format(value));

export function number(value) {
  if (value === null || value === undefined) return "–";
  if (Number.isInteger(value)) return whole(value);
  return Math.abs(value) >= 1000 ? CENTS.format(value) : FINE.format(value);
}

/** The numbers of an axis, short, with the decimals that tell apart two that differ by `step`. */
export function ticks(values, step) {
  return values.map((value) => {
    const size = Math.abs(value);
    const unit = size < 10_000 ? 1 : 1000 ** Math.min(4, Math.floor(Math.log10(size) / 3));
    const maximumFractionDigits = Math.min(20, Math.max(0, 1 + Math.ceil(Math.log10(unit / step))));
    return new Intl.NumberFormat("en", { notation: unit === 1 ? "standard" : "compact", maximumFractionDigits }).format(value);
  });
}

/** A number that came as text: its digits stay as they are, with groups. Only more than six decimals, such as those of a
 *  quotient, lose the zeros at their end. */
export function exact(text) {
  if (text === null || text === undefined) return "–";
  const found = /^(-?)(\d+)(\.\d+)?$/.exec(text);
  if (!found) return text;
  const decimals = found[3] ?? "";
  const shown = decimals.length > 7 ? decimals.replace(/\.?0+$/, "") : decimals;
  return found[1] + found[2].replace(/\B(?=(\d{3})+$)/g, ",") + shown;
}

const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/gu;

/** A text from an address as the server shows values: short, and what has no glyph is written out. */
export function visible(text) {
  const letters = [...text];
  const kept = letters.length > 80 ? `${letters.slice(0, 80).join("")}…` : text;
  return kept.replace(HIDDEN, (hidden) => {
    const code = hidden.codePointAt(0);
    return code < 0x10000 ? `\\u${code.toString(16).padStart(4, "0")}` : `\\U${code.toString(16).padStart(8, "0")}`;
  });
}

/** Seconds since 1970 as a time, as exact as `step` seconds ask for. */
export function time(seconds, step = 1) {
  const text = new Date(seconds * 1000).toISOString();
  if (step >= 86_400) return text.slice(0, 10);
  return `${text.slice(0, 10)} ${text.slice(11, step >= 60 ? 16 : 19)}`;
}

export function span(seconds) {
  const units = [["d", 86_400], ["h", 3600], ["min", 60]];
  for (const [unit, size] of units) {
    if (seconds >= size) {
      const whole = Math.floor(seconds / size);
      const rest = Math.floor((seconds - whole * size) / (size === 60 ? 1 : size / (unit === "d" ? 24 : 60)));
      const below = { d: "h", h: "min", min: "s" }[unit];
      return rest && whole < 10 ? `${whole} ${unit} ${rest} ${below}` : `${whole} ${unit}`;
    }
  }
  return seconds >= 10 ? `${Math.floor(seconds)} s` : `${Math.max(0, Math.round(seconds * 10) / 10)} s`;
}

/** An element that says how long ago an ISO time was, and goes on saying it. */
export function ago(iso) {
  const made = document.createElement("time");
  if (!iso) {
    made.textContent = "never";
    return made;
  }
  made.dateTime = iso;
  made.title = `${iso.slice(0, 19).replace("T", " ")} UTC`;
  const say = () => {
    const seconds = (Date.now() - Date.parse(iso)) / 1000;
    made.textContent = seconds < 1 ? "just now" : `${span(Math.floor(seconds))} ago`;
  };
  say();
  const timer = setInterval(() => (made.isConnected || !made.dataset.was ? ((made.dataset.was = "1"), say()) : clearInterval(timer)), 1000);
  return made;
}
