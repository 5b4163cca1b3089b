// What a feature of an alarm means to a person: how far it is from its usual value, as a
// factor and in dB, or as a difference. The names and units are those of
// docs/reference/features.md.

import { t } from "./text.js";
import { number } from "./parts.js";

// Features that are positive and have a true zero: their ratios mean something. A level in
// the channel's unit is an amplitude (20·log10 of its ratio are dB), one in its square a
// power (10·log10). Numbers and frequencies have no dB.
const sizes = {
  variance: "power", std: "amplitude", rms: "amplitude", peak: "amplitude", peak_to_peak: "amplitude", residual: "amplitude",
  crest: "number", shape: "number", impulse: "number", clearance: "number", kurtosis: "number", zero_crossings: "number", mobility: "number", complexity: "number",
  centroid: "number", spread: "number", rolloff: "number", flatness: "number", envelope_centroid: "number",
};

// kindOf returns "log" for a common logarithm of a power, a kind of sizes, or "difference".
export function kindOf({ feature = "", channel = "", unit = "" }) {
  const name = feature.startsWith(channel + ".") ? feature.slice(channel.length + 1) : feature.slice(feature.lastIndexOf(".") + 1);
  if (unit.startsWith("log10") || /^(band|harmonic|packet|envelope)\d\d$|^envelope_depth$/.test(name)) return "log";
  return sizes[name] ?? "difference";
}

// levelOf words the value of a feature: the logarithm of a power is worded as the amplitude
// that has this power, in the channel's own unit.
export function levelOf(f, value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const unit = f.unit ?? "";
  if (kindOf(f) !== "log") return `${number(value)} ${unit}`.trim();
  const root = unit.match(/^log10 \(?(.*?)\)?²$/)?.[1];
  if (root !== undefined && root !== "") return `${number(10 ** (value / 2))} ${root}`;
  return unit.startsWith("log10 ") || unit === "" ? `${number(10 * value)} dB` : `${number(value)} ${unit}`;
}

const sign = (v) => (v > 0 ? "+" : v < 0 ? "−" : "±");
const decibels = (v) => `${sign(+v.toFixed(1))}${Math.abs(v).toFixed(1)} dB`;

// compare says how a feature stands to its usual value: {factor, db, difference, text}. text
// is "" if one of the two is not known.
export function compare(f) {
  const { value, usual } = f;
  if (![value, usual].every((v) => typeof v === "number" && Number.isFinite(v))) return { text: "" };
  const kind = kindOf(f);
  if (kind === "log") {
    const db = 10 * (value - usual), factor = 10 ** ((value - usual) / 2); // of amplitudes
    return { factor, db, text: t("alarm.factor.db", { factor: factorText(factor), db: decibels(db) }) };
  }
  if (kind !== "difference" && value > 0 && usual > 0) {
    const factor = value / usual, text = factorText(factor);
    if (kind === "number") return { factor, text: t("alarm.factor", { factor: text }) };
    const db = (kind === "power" ? 10 : 20) * Math.log10(factor);
    return { factor, db, text: t("alarm.factor.db", { factor: text, db: decibels(db) }) };
  }
  const difference = value - usual, size = `${number(Math.abs(difference))} ${f.unit ?? ""}`.trim();
  return { difference, text: difference === 0 ? t("alarm.same") : t(difference > 0 ? "alarm.above" : "alarm.below", { size }) };
}

// factorText keeps two digits: 2.3, 0.43, 12.
function factorText(factor) {
  return factor >= 9.95 ? String(Math.round(factor)) : String(+factor.toPrecision(2));
}
