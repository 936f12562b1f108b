/**
 * How classes of capability labels are written in the configuration: a mapping of label to class. A label that is not
 * in it is one of eligibility. What the classes mean for matching is the kernel's (placement.ts).
 */
import { capabilityProblem } from '../kernel/admission/application.js';
import { CAPABILITY_CLASSES, type CapabilityClass, type CapabilityClasses } from '../kernel/placement.js';
import { ConfigError, readList } from './option-values.js';

/** `warmed-cache=affinity,gpu=eligibility`, or in a file a mapping. */
export function readCapabilityClasses(written: unknown): CapabilityClasses {
  const classes = new Map<string, CapabilityClass>();
  for (const [label, word] of entriesOf(written)) {
    const problem = capabilityProblem(label);
    if (problem !== null) throw new ConfigError(`${JSON.stringify(label)}: a label ${problem}`);
    const known = CAPABILITY_CLASSES.find((each) => each === word);
    if (known === undefined) throw new ConfigError(`${label}: must be one of ${CAPABILITY_CLASSES.join(', ')}`);
    if (classes.has(label)) throw new ConfigError(`${label}: is given twice`);
    classes.set(label, known);
  }
  return classes;
}

function entriesOf(written: unknown): readonly (readonly [string, unknown])[] {
  if (typeof written === 'object' && written !== null && !Array.isArray(written)) return Object.entries(written);
  return readList(written).map((pair) => {
    const at = pair.lastIndexOf('=');
    if (at < 0) throw new ConfigError('must be pairs of label=class, gpu=eligibility for example');
    return [pair.slice(0, at), pair.slice(at + 1)];
  });
}
