// Numbers for people; a dash for an unknown one.
export const known = (value) => typeof value === "number" && Number.isFinite(value);
const nothing = "–";

function digits(value, places) {
  return value.toLocaleString("en", {maximumFractionDigits: places, minimumFractionDigits: 0});
}

const significant = (value) => digits(value, value === 0 ? 0 : Math.max(0, Math.min(6, 2 - Math.floor(Math.log10(Math.abs(value))))));

export const count = (value) => known(value) ? digits(value, 0) : nothing;
export const number = (value) => known(value) ? significant(value) : nothing;
export const share = (value) => known(value) ? `${(value * 100).toFixed(2)} %` : nothing;
export const roughShare = (value) => known(value) ? `${significant(value * 100)} %` : nothing;
export const percent = (value) => known(value) ? `${Math.round(value)} %` : nothing;
export function loss(value) {
  if (!known(value)) return nothing;
  const size = Math.abs(value);
  if (size >= 1e7 || (size > 0 && size < 0.001)) return value.toExponential(2);
  return size >= 1000 ? digits(value, 0) : value.toFixed(4);
}

export function seconds(value) {
  if (!known(value)) return nothing;
  if (value < 1e-3) return `${significant(value * 1e6)} µs`;
  if (value < 1) return `${significant(value * 1e3)} ms`;
  if (value < 60) return `${significant(value)} s`;
  const whole = Math.round(value);
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  return hours > 0 ? `${hours} h ${minutes} min` : `${minutes} min ${rest} s`;
}

function scaled(value, unit) {
  if (!known(value)) return nothing;
  const steps = ["", "k", "M", "G", "T"];
  let place = 0;
  while (Math.abs(value) >= 1000 && place < steps.length - 1) { value /= 1000; ++place; }
  return `${significant(value)} ${steps[place]}${unit}`;
}
export const bytes = (value) => scaled(value, "B");
export const speed = (value) => scaled(value, "B/s");
export const rate = (value) => known(value) ? scaled(value, "").trim() : nothing;

export function ago(time, now = Date.now() / 1000) {
  if (!known(time) || time <= 0) return nothing;
  const past = Math.max(0, now - time);
  if (past < 60) return "just now";
  if (past < 3600) return `${Math.floor(past / 60)} min ago`;
  if (past < 86400) return `${Math.floor(past / 3600)} h ago`;
  return past < 86400 * 14 ? `${Math.floor(past / 86400)} days ago` : new Date(time * 1000).toLocaleDateString();
}

export const moment = (time) => known(time) && time > 0 ? new Date(time * 1000).toLocaleString() : nothing;

// Shortens names of runs in the middle: they differ at their ends.
export const shortened = (name, begin = 10, end = 19) => name.length <= begin + end + 1 ? name : `${name.slice(0, begin)}…${name.slice(-end)}`;
