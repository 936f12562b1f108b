/**
 * A rule of a source document and the tests that hold the service to it. The rules stand here in the project's words;
 * docs/reference/rules.md is written from them, and a test that is renamed or removed turns its rule red.
 */

export interface SourceRule {
  /** Section of the document and the place in it: `D2.5`. */
  readonly id: string;
  readonly rule: string;
  /** `file › title`: the file below test/, and the title of a `describe` or an `it` in it. */
  readonly tests: readonly string[];
}

export interface SourceDocument {
  readonly title: string;
  readonly note: string;
  readonly rules: readonly SourceRule[];
}

export function rule(id: string, text: string, ...tests: readonly string[]): SourceRule {
  return { id, rule: text, tests };
}
