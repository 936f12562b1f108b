/**
 * What is wrong with the command line itself: found before anything is sent, printed as one line, exit code 2.
 */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}
