// Every status × intent cell of the kernel has an expected result, illegal ones too (quality.md, "How it is tested").
// The cells are data in decide-table-*.ts; this file proves that they cover the cross product and that they hold.

import { describe, expect, it } from 'vitest';
import { judge } from '../../src/kernel/decide.js';
import { TASK_STATUSES } from '../../src/kernel/status.js';
import { INTENT_NAMES, type IntentName, type Row, intentIn, judgedCell } from './decide-intents.js';
import { STATE_NAMES, type StateName, draftIn, recordIn } from './decide-states.js';
import { ATTEMPTS } from './decide-table-attempts.js';
import { LIMITS } from './decide-table-limits.js';
import { TERMINAL } from './decide-table-terminal.js';
import { WAITING } from './decide-table-waiting.js';

const TABLE: Readonly<Record<StateName, Row>> = { ...WAITING, ...ATTEMPTS, ...LIMITS, ...TERMINAL };

describe('the decision table', () => {
  it('has a cell for every state and every intent', () => {
    const cells = STATE_NAMES.flatMap((state) => INTENT_NAMES.map((intent) => TABLE[state][intent]));
    expect(cells.every((cell) => typeof cell === 'string')).toBe(true);
    expect(cells).toHaveLength(STATE_NAMES.length * INTENT_NAMES.length);
    expect(Object.keys(TABLE).sort()).toEqual([...STATE_NAMES].sort());
    for (const state of STATE_NAMES) expect(Object.keys(TABLE[state]).sort()).toEqual([...INTENT_NAMES].sort());
  });

  it('has every stored status', () => {
    const statuses = new Set(STATE_NAMES.map((state) => recordIn(state).status));
    expect([...statuses].sort()).toEqual([...TASK_STATUSES].sort());
  });

  it('has every kind of intent', () => {
    const kinds = new Set(INTENT_NAMES.map((name) => intentIn(recordIn('queued'), name).kind));
    expect([...kinds].sort()).toEqual(
      [
        'claim',
        'hand_back',
        'receipt',
        'release',
        'request_cancellation',
        'resume',
        'session_lost',
        'settle',
        'skip',
        'suspend',
        'tick',
        'update_policy',
      ].sort(),
    );
  });

  describe.each(STATE_NAMES)('%s', (state) => {
    it.each(INTENT_NAMES)('%s', (intent: IntentName) => {
      expect(judgedCell(recordIn(state), intent)).toBe(TABLE[state][intent]);
    });
  });
});

describe('a verdict that is not applied', () => {
  it('leaves the draft as it was, without events', () => {
    let judgements = 0;
    for (const state of STATE_NAMES) {
      for (const name of INTENT_NAMES) {
        const draft = draftIn(state);
        const before = structuredClone(draft.record);
        const verdict = judge(draft, intentIn(draft.record, name));
        if (verdict.kind === 'applied') continue;
        expect(draft.events).toEqual([]);
        expect(draft.record).toEqual(before);
        judgements += 1;
      }
    }
    expect(judgements).toBeGreaterThan(500);
  });
});
