// Spans as people write and read them.

import { describe, expect, it } from 'vitest';
import { formatDuration, MAX_DURATION_MS, parseDuration } from '../../src/cli/options/duration.js';

describe('a duration', () => {
  it.each([
    ['0', 0],
    ['250ms', 250],
    ['30s', 30_000],
    ['1.5s', 1_500],
    ['5m', 300_000],
    ['1h30m', 5_400_000],
    ['2d', 172_800_000],
    ['1m1s1ms', 61_001],
    [' 10s ', 10_000],
    ['0.0005s', 0],
    ['3650d', MAX_DURATION_MS],
  ])('%s is %d ms', (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });

  it.each(['', '   ', '30', 's', '-5s', '5 m', '1e3s', '5m?', 'ms', '10M', '3651d', '٣s'])('refuses %j', (text) => {
    expect(() => parseDuration(text)).toThrow();
  });

  it('guesses the unit that was forgotten', () => {
    expect(() => parseDuration('30')).toThrow('30s?');
  });

  it.each([
    [0, '0ms'],
    [412, '412ms'],
    [999.6, '1.0s'],
    [3_249, '3.2s'],
    [59_949, '59.9s'],
    [59_999, '1m00s'],
    [125_000, '2m05s'],
    [3_599_600, '1h00m'],
    [3_720_000, '1h02m'],
    [86_400_000, '1d00h'],
    [-5, '0ms'],
  ])('of %d ms reads %s', (ms, text) => {
    expect(formatDuration(ms)).toBe(text);
  });
});
