/**
 * How much memory a process group holds, where the system says so in /proc.
 */
import { readdirSync, readFileSync } from 'node:fs';

const KIB = 1_024;

/** Bytes in memory of all processes of the group; null where that can't be known. */
export function residentBytes(group: number): number | null {
  let pids: string[];
  try {
    pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  } catch {
    return null;
  }
  let bytes = 0;
  for (const pid of pids) if (groupOf(pid) === group) bytes += residentOf(pid);
  return bytes === 0 ? null : bytes;
}

function groupOf(pid: string): number | null {
  // "pid (name) state ppid pgrp …"; the name may hold anything.
  const fields = read(pid, 'stat')
    .replace(/^.*\) /s, '')
    .split(' ');
  return fields[2] === undefined ? null : Number(fields[2]);
}

function residentOf(pid: string): number {
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(read(pid, 'status'))?.[1] ?? 0) * KIB;
}

function read(pid: string, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    // It has ended meanwhile.
    return '';
  }
}
