// The rows of the AEP document's "State Transitions" table, copied as text so that nothing of the kernel's own table
// is used to check it.

const ROWS = `
submitted > accepted failed cancelled timed_out
accepted > started failed cancelled timed_out
started > progress output blocked completed failed cancelled timed_out
blocked > started progress failed cancelled timed_out
progress > progress output blocked completed failed cancelled timed_out
output > progress output blocked completed failed cancelled timed_out
completed >
failed >
cancelled >
timed_out >
`;

export const AEP_ROWS: ReadonlyMap<string, readonly string[]> = new Map(
  ROWS.trim()
    .split('\n')
    .map((row) => {
      const [from = '', to = ''] = row.split('>');
      return [from.trim(), to.trim() === '' ? [] : to.trim().split(' ')];
    }),
);

export function aepAllows(from: string, to: string): boolean {
  return AEP_ROWS.get(from)?.includes(to) ?? false;
}
