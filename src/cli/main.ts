#!/usr/bin/env node
/**
 * The program `reeve`. Sets the exit code and lets the process end by itself, so that what was printed gets out.
 */
import { runProgram } from './program.js';
import { processTerminal } from './terminal.js';

/** After a failure, for what a command that broke off half-way has left open. */
const END_ANYWAY_MS = 1_000;

process.exitCode = await runProgram(process.argv.slice(2), processTerminal(), process.env);
if (process.exitCode !== 0) setTimeout(() => process.exit(), END_ANYWAY_MS).unref();
