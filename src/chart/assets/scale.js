// Numbers on axes: scales, ticks, and values as text with units.
const lockstepScale = (() => {
  "use strict";
  const kPrefixes = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
  const kSomeMore = 1.25;  // a quarter more ticks than asked for are better than half as many
  const known = (value) => typeof value === "number" && Number.isFinite(value);

  // Whether numbers differ by rounding at most: ticks between them would have no end.
  const same = (a, b) => Math.abs(a - b) <= 1e-9 * Math.max(Math.abs(a), Math.abs(b));

  function prefix(largest) {
    return kPrefixes.find(([size]) => largest >= size) || [1, ""];
  }

  // Returns how numbers of a unit are written if `largest` is the largest of them: multiplied by `factor`, followed by
  // `suffix`.
  function unitScale(unit, largest) {
    const size = Math.abs(largest) || 0;
    switch (unit) {
      case "share": return {factor: 100, suffix: " %"};
      case "percent": return {factor: 1, suffix: " %"};
      case "x": return {factor: 1, suffix: " ×"};
      case "s":
        if (size >= 3 * 3600) return {factor: 1 / 3600, suffix: " h"};
        if (size >= 600) return {factor: 1 / 60, suffix: " min"};
        if (size >= 1 || size === 0) return {factor: 1, suffix: " s"};
        return size >= 1e-3 ? {factor: 1e3, suffix: " ms"} : {factor: 1e6, suffix: " µs"};
      case "B":
      case "B/s": {
        const [divisor, letter] = prefix(size);
        return {factor: 1 / divisor, suffix: ` ${letter}${unit}`};
      }
      default: {
        const [divisor, letter] = size >= 1e5 ? prefix(size) : [1, ""];
        return {factor: 1 / divisor, suffix: letter};
      }
    }
  }

  function grouped(value, digits) {
    const text = Math.abs(value).toFixed(digits);
    const [whole, part] = text.split(".");
    const sign = value < 0 && Number(text) !== 0 ? "−" : "";
    return sign + whole.replace(/\B(?=(\d{3})+$)/g, ",") + (part ? "." + part : "");
  }

  // Formats a single value with up to four significant digits.
  function valueText(value, unit) {
    if (!known(value)) return "–";
    if ((unit || "") === "" && Number.isInteger(value) && Math.abs(value) < 1e9) return grouped(value, 0);
    const {factor, suffix} = unitScale(unit, value);
    const number = value * factor;
    const size = Math.abs(number);
    if (number === 0) return "0" + suffix;
    if (size < 1e-4 || size >= 1e7) return number.toExponential(2).replace("-", "−") + suffix;
    const digits = Math.max(0, Math.min(6, 3 - Math.floor(Math.log10(size))));
    return grouped(Number(number.toFixed(digits)), digits).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "") + suffix;
  }

  function niceStep(range, count) {
    const raw = range / Math.max(count, 1);
    const power = 10 ** Math.floor(Math.log10(raw));
    return power * ([1, 2, 2.5, 5].find((step) => raw <= step * power * kSomeMore) || 10);
  }

  // `whole`: numbers between whole ones mean nothing on this axis.
  function linearTicks(low, high, count, unit, whole = false) {
    const {factor, suffix} = unitScale(unit, Math.max(Math.abs(low), Math.abs(high)));
    const from = low * factor, to = high * factor;
    if (!(to > from) || same(from, to)) return [];
    const step = Math.max(niceStep(to - from, count), whole && factor === 1 ? 1 : 0);
    let digits = 0;
    while (digits < 8 && Math.abs(Math.round(step * 10 ** digits) - step * 10 ** digits) > 1e-6) ++digits;
    const ticks = [];
    for (let i = Math.ceil(from / step - 1e-9); i * step <= to + step * 1e-9; ++i) {
      ticks.push({value: i * step / factor, text: i === 0 ? "0" + (suffix.startsWith(" ") ? suffix : "")
                                                          : grouped(i * step, digits) + suffix});
    }
    return ticks;
  }

  function logTicks(low, high, count, unit) {
    const {factor} = unitScale(unit, 1);
    const from = Math.log10(low * factor), to = Math.log10(high * factor);
    const steps = to - from < 1.3 ? [1, 2, 3, 5, 7] : to - from < 2.6 ? [1, 2, 5] : [1];
    const every = Math.max(1, Math.ceil((to - from) / Math.max(count, 2)));
    const ticks = [];
    for (let power = Math.floor(from); power <= Math.ceil(to); ++power) {
      if (steps.length === 1 && power % every !== 0) continue;
      for (const step of steps) {
        const value = step * 10 ** power / factor;
        if (value >= low * 0.9999 && value <= high * 1.0001) ticks.push({value, text: valueText(value, unit)});
      }
    }
    return ticks;
  }

  // Uses data values as ticks if there are few (32, 64, 128 rather than 50, 100), without those that would overlap.
  function valueTicks(values, unit, place, room) {
    const ticks = [];
    let end = -Infinity;
    for (const value of values) {
      const text = valueText(value, unit);
      const half = text.length * 3.6 + 5;
      if (place(value) - half < end) continue;
      end = place(value) + half;
      if (place(value) <= room) ticks.push({value, text});
    }
    return ticks;
  }

  // Returns a function from values to positions, with `invert` and `domain`.
  function scale(domain, range, log) {
    const [from, to] = domain;
    const bend = log ? Math.log : (value) => value;
    const straighten = log ? Math.exp : (value) => value;
    const low = bend(from), width = bend(to) - low || 1;
    const place = (value) => range[0] + (bend(value) - low) / width * (range[1] - range[0]);
    place.invert = (at) => straighten(low + (at - range[0]) / (range[1] - range[0]) * width);
    place.domain = domain;
    place.log = log;
    return place;
  }

  // Returns the smallest and largest known value; on a logarithmic axis, of the positive ones.
  function extent(values, log) {
    let low = Infinity, high = -Infinity;
    for (const value of values) {
      if (!known(value) || (log && value <= 0)) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
    return low <= high ? [low, high] : log ? [1, 10] : [0, 1];
  }

  // Returns a domain with some margin, starting at zero if that takes little room.
  function roomy([low, high], {log = false, zero = false, most = Infinity} = {}) {
    if (log) return same(low, high) ? [low / 2, high * 2] : [low / 1.15, high * 1.15];
    if (zero || (low >= 0 && low < 0.5 * high)) low = Math.min(low, 0);
    if (same(low, high)) return low === 0 ? [0, 1] : [low - Math.abs(low) * 0.1, Math.min(high + Math.abs(high) * 0.1, Math.max(most, high))];
    const air = (high - low) * 0.06;
    return [low === 0 ? 0 : low - air, high === 0 ? 0 : high <= most ? Math.min(high + air, Math.max(most, high)) : high + air];
  }

  // Returns the exponential moving average with this share of the past; without the bias of its beginning.
  function smoothed(y, share) {
    let mean = 0, weight = 0;
    return y.map((value) => {
      if (!known(value)) return value;
      mean = share * mean + (1 - share) * value;
      weight = share * weight + (1 - share);
      return mean / weight;
    });
  }

  return {known, unitScale, valueText, linearTicks, logTicks, valueTicks, scale, extent, roomy, smoothed};
})();
