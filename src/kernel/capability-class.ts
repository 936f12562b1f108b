/**
 * What a capability label means besides matching (lifecycle.md section 5). The deployment says it; a label that it says
 * nothing of is of the class eligibility. Never an authorisation.
 */

export const CAPABILITY_CLASSES = ['eligibility', 'serialization', 'affinity'] as const;
export type CapabilityClass = (typeof CAPABILITY_CLASSES)[number];

export type CapabilityClasses = ReadonlyMap<string, CapabilityClass>;
