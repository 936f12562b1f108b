/**
 * The Python of this machine with the real grpc library. REEVE_PYTHON names an interpreter that has grpcio and
 * grpcio-tools; without them what needs them is skipped loudly, and fails in CI.
 */
import { execFile, spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
export const PYTHON = process.env['REEVE_PYTHON'] ?? 'python3';
const hasGrpc = spawnSync(PYTHON, ['-c', 'import grpc, grpc_tools']).status === 0;

/** Whether to try what needs it. In CI it is tried, and fails, also where it is missing. */
export const triesPython = hasGrpc || process.env['REEVE_CI'] !== undefined;
if (!triesPython) console.warn('grpcio-tools is not installed: the Python examples are not tried');

/** Stubs into a folder, by the command that users are told. */
export async function generatePythonStubs(folder: string): Promise<void> {
  const env = { ...process.env, REEVE_PYTHON: PYTHON };
  await promisify(execFile)('bash', ['scripts/stubs-python.sh', folder], { cwd: ROOT, env, timeout: 60_000 });
}
