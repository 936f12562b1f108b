import js from '@eslint/js';
import { defineConfig } from 'eslint/config';
import tseslint from 'typescript-eslint';

// The whole table of import directions is test/boundaries/import-rules.ts. The
// innermost parts are repeated here, because an editor shows a lint error at once.
const kernelImports = {
  regex: '^(\\.\\./)+(gen|lib|store|authority|wire|server|sdk)/|^(?!\\.|node:crypto$)',
  message: 'The kernel is pure: it imports nothing from outside src/kernel.',
};
const sdkImports = {
  regex: '^(\\.\\./)+(kernel|lib|store|authority|dispatcher|wire|services|server|embed|cli)/',
  message: 'The SDK imports src/gen and its own folder only.',
};

export default defineConfig(
  { ignores: ['node_modules/', 'dist/', 'dist-bench/', 'coverage/', 'src/gen/'] },
  js.configs.recommended,
  tseslint.configs.recommendedTypeChecked,
  {
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    languageOptions: {
      parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname },
    },
    rules: {
      eqeqeq: 'error',
      'no-restricted-syntax': [
        'error',
        {
          selector: 'ExportDefaultDeclaration',
          message: 'No default exports: a thing has one name, everywhere.',
        },
      ],
      '@typescript-eslint/consistent-type-imports': [
        'error',
        { fixStyle: 'inline-type-imports', prefer: 'type-imports' },
      ],
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      // `_name` says on purpose: needed by a signature, not by this function.
      '@typescript-eslint/no-unused-vars': [
        'error',
        { argsIgnorePattern: '^_', varsIgnorePattern: '^_', caughtErrorsIgnorePattern: '^_' },
      ],
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true }],
      // Ports have promises in their signatures that a memory adapter need not await.
      '@typescript-eslint/require-await': 'off',
    },
  },
  {
    files: ['src/kernel/**/*.ts'],
    rules: { 'no-restricted-imports': ['error', { patterns: [kernelImports] }] },
  },
  {
    files: ['src/sdk/**/*.ts'],
    rules: { 'no-restricted-imports': ['error', { patterns: [sdkImports] }] },
  },
  {
    // Tools that load a file by path ask for its default export.
    files: ['*.config.ts', '*.config.js', 'test/counting-reporter.ts', 'test/faults/scenario-reporter.ts'],
    rules: { 'no-restricted-syntax': 'off' },
  },
  { files: ['**/*.js', '**/*.mjs'], extends: [tseslint.configs.disableTypeChecked] },
);
