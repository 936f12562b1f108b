/**
 * Findings of a verification as lines, page by page as they come.
 */
import type { Finding } from '../../gen/reeve/v1/admin_service_pb.js';
import { plainText } from './plain-text.js';
import { type Column, renderTable } from './table.js';

const COLUMNS: readonly Column[] = [
  { title: 'TASK', maxWidth: 128 },
  { title: 'INVARIANT' },
  { title: 'EVENT', align: 'right' },
  { title: 'DETAIL', maxWidth: 400 },
];

/** The title first. */
export function findingRows(findings: readonly Finding[], width: number): readonly string[] {
  return renderTable(
    COLUMNS,
    findings.map(({ taskId, invariant, eventNumber, detail }) => [
      taskId === '' ? '—' : plainText(taskId),
      plainText(invariant),
      eventNumber === 0n ? '' : String(eventNumber),
      plainText(detail),
    ]),
    width,
  );
}
