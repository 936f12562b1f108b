/**
 * The numbers that admission accepts, and their one canonical spelling.
 *
 * Owns their grammar (RFC 8259 section 6) and the rule "what is written is what every reader will see": the decimal
 * value written must be that of the shortest decimal form of its double, and integers must be safe. It never rounds.
 */

const PLUS = 0x2b;
const MINUS = 0x2d;
const POINT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;
const UPPER_E = 0x45;
const LOWER_E = 0x65;

/** This many digits are always a safe integer: 10^15 − 1 < 2^53 − 1. */
const ALWAYS_SAFE_DIGITS = 15;

export interface ScannedNumber {
  /** Offset after the number, or of the problem. */
  readonly end: number;
  readonly problem: string | null;
  /** A safe integer in its canonical spelling: nothing further to check. */
  readonly isSafeInteger: boolean;
}

/**
 * Canonical spelling of a double (RFC 8785 section 3.2.2.3, which is ECMAScript's); `-0` is `0`.
 * @returns null for NaN, infinities and integers beyond ±(2^53 − 1) — every double beyond that is an integer.
 */
export function canonicalNumber(value: number): string | null {
  return Math.abs(value) <= Number.MAX_SAFE_INTEGER ? String(value) : null;
}

/**
 * Canonical spelling of a number as written, or null when it must be refused (`numberProblem` says why).
 * @param written matches the number grammar of RFC 8259.
 */
export function canonicalWrittenNumber(written: string): string | null {
  const value = Number(written);
  const shortest = canonicalNumber(value);
  if (shortest === null || shortest === written) return shortest;
  return sameDecimal(written, shortest) ? shortest : null;
}

/** Why `canonicalWrittenNumber` answers null for this text. */
export function numberProblem(written: string): string {
  const value = Number(written);
  if (!Number.isFinite(value)) return 'the number is too large for a double';
  if (canonicalNumber(value) === null) {
    return 'integers beyond ±(2^53 − 1) are not exact for every reader; send it as a string';
  }
  return `the number is not the shortest decimal form of its double (${String(value)}); readers would round it`;
}

export function beginsNumber(unit: number): boolean {
  return unit === MINUS || isDigit(unit);
}

/** Finds the end of the number that begins at `start`. */
export function scanNumber(text: string, start: number): ScannedNumber {
  const whole = text.charCodeAt(start) === MINUS ? start + 1 : start;
  let end = endOfDigits(text, whole);
  if (end === whole) return brokenNumber(end);
  const digits = end - whole;
  const leadingZero = text.charCodeAt(whole) === ZERO;
  if (leadingZero && digits > 1) {
    return {
      end: start,
      problem: 'a number may not begin with a zero and more digits',
      isSafeInteger: false,
    };
  }
  const unit = unitAt(text, end);
  if (unit !== POINT && unit !== UPPER_E && unit !== LOWER_E) {
    return { end, problem: null, isSafeInteger: digits <= ALWAYS_SAFE_DIGITS && !leadingZero };
  }
  if (unit === POINT) {
    const fraction = end + 1;
    end = endOfDigits(text, fraction);
    if (end === fraction) return brokenNumber(end);
  }
  if (unitAt(text, end) === UPPER_E || unitAt(text, end) === LOWER_E) {
    const sign = unitAt(text, end + 1);
    const exponent = sign === PLUS || sign === MINUS ? end + 2 : end + 1;
    end = endOfDigits(text, exponent);
    if (end === exponent) return brokenNumber(end);
  }
  return { end, problem: null, isSafeInteger: false };
}

function brokenNumber(end: number): ScannedNumber {
  return {
    end,
    problem: 'a digit is missing in a number; NaN and Infinity are not JSON',
    isSafeInteger: false,
  };
}

function endOfDigits(text: string, start: number): number {
  let at = start;
  while (isDigit(unitAt(text, at))) at += 1;
  return at;
}

function unitAt(text: string, at: number): number {
  return at < text.length ? text.charCodeAt(at) : -1;
}

function isDigit(unit: number): boolean {
  return unit >= ZERO && unit <= NINE;
}

/** The size of a decimal value: 0.<digits> × 10^exponent, digits without leading or trailing zeros; zero has none. */
interface Decimal {
  readonly digits: string;
  readonly exponent: number;
}

/**
 * Compares a spelling with the shortest spelling of the double it was read as (so the sign is the same) by exact decimal
 * value. Exponents are safe integers here: the text is at most 1 MiB and reads as a finite double, not as zero unless
 * it has no digits, which is judged first.
 */
function sameDecimal(written: string, shortest: string): boolean {
  const left = decimalOf(written);
  const right = decimalOf(shortest);
  return left.digits === right.digits && (left.digits === '' || left.exponent === right.exponent);
}

function decimalOf(written: string): Decimal {
  const exponentAt = written.search(/[eE]/);
  const mantissa = written.slice(written.startsWith('-') ? 1 : 0, exponentAt < 0 ? undefined : exponentAt);
  const pointAt = mantissa.indexOf('.');
  const whole = pointAt < 0 ? mantissa : mantissa.slice(0, pointAt);
  const all = pointAt < 0 ? mantissa : whole + mantissa.slice(pointAt + 1);
  const first = firstNonZero(all);
  const exponent = exponentAt < 0 ? 0 : Number(written.slice(exponentAt + 1));
  return { digits: all.slice(first, endOfNonZero(all, first)), exponent: exponent + whole.length - first };
}

function firstNonZero(digits: string): number {
  let at = 0;
  while (at < digits.length && digits.charCodeAt(at) === ZERO) at += 1;
  return at;
}

/** A loop and not /0+$/, which is quadratic on a long run of zeros that does not end the text. */
function endOfNonZero(digits: string, first: number): number {
  let end = digits.length;
  while (end > first && digits.charCodeAt(end - 1) === ZERO) end -= 1;
  return end;
}
