import { describe, expect, it } from 'vitest';
import { purityViolations } from './kernel-purity.js';
import { parseSource, readSources } from './source-file.js';
function violationsIn(text) {
    return purityViolations(parseSource('src/kernel/decide.ts', text));
}
describe('the kernel', () => {
    it('is pure', () => {
        expect(readSources(process.cwd(), 'src/kernel').flatMap(purityViolations)).toEqual([]);
    });
    it.each([
        'const now = Date.now();',
        'const now = new Date();',
        'const jitter = Math.random();',
        'const start = performance.now();',
        'const id = crypto.randomUUID();',
        'setTimeout(run, 5);',
        'console.log(1);',
        'const home = process.env;',
        'async function decide() {}',
        'const decide = async () => 1;',
        'let pending: Promise<void>;',
        'const done = Promise.resolve(1);',
    ])('%s is caught', (text) => {
        expect(violationsIn(text)).toHaveLength(1);
    });
    it.each([
        'const fire = new Date(epochMs).getUTCHours();',
        'const half = Math.floor(x / 2);',
        'interface Plan { readonly process: string }',
        'const step = plan.process;',
        '// Date.now() is an argument here',
    ])('%s is no offence', (text) => {
        expect(violationsIn(text)).toEqual([]);
    });
});
