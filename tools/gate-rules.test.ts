import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { renovateFaults, unknownScripts, unpinnedActions } from './check-github.js'
import { lockfileFaults } from './check-lockfiles.js'
import { moduleState } from './check-module-state.js'
import { apiFaults } from './check-public-api.js'
import { signatureFaults } from './check-signatures.js'
import { faultsOfCommand } from './faults-of-command.js'
import { missingPlatforms } from './lockfile-platforms.js'
import { longTest } from './long-test.js'
import { examplesIn } from './markdown-examples.js'
import { linkedFiles } from './markdown-links.js'
import { linksWithin } from './packed-docs.js'
import { publicApi } from './public-api.js'

test('a lockfile with a download address or without a checksum is refused', () => {
  const lock = {
    packages: {
      '': {},
      'node_modules/good': { integrity: 'sha512-a' },
      'node_modules/own': { resolved: 'packages/own', link: true },
      'packages/own': {},
      'node_modules/addressed': { resolved: 'https://registry.example/addressed.tgz', integrity: 'sha512-b' },
      'node_modules/good/node_modules/unchecked': {},
    },
  }
  assert.deepEqual(lockfileFaults('package-lock.json', lock), [
    'package-lock.json: node_modules/addressed holds a download address',
    'package-lock.json: node_modules/good/node_modules/unchecked has no checksum',
  ])
})

test('a lockfile that leaves out the binaries of other platforms is refused', () => {
  const tool = { integrity: 'sha512-a', optionalDependencies: { '@tool/linux-x64-gnu': '1.0.0', '@tool/darwin-arm64': '1.0.0' } }
  const linux = { version: '1.0.0', integrity: 'sha512-b', optional: true, os: ['linux'], cpu: ['x64'], libc: ['glibc'] }
  const lock = { packages: { 'node_modules/tool': tool, 'node_modules/@tool/linux-x64-gnu': linux } }
  assert.deepEqual(lockfileFaults('package-lock.json', lock), [
    'package-lock.json: node_modules/@tool/darwin-arm64 is not named; "npm run lockfile" adds it',
  ])
  const darwin = { version: '1.0.0', os: ['darwin'], cpu: ['arm64'], optional: true }
  assert.deepEqual(missingPlatforms(lock), { 'node_modules/@tool/darwin-arm64': darwin })
  assert.deepEqual(lockfileFaults('package-lock.json', { packages: { ...lock.packages, ...missingPlatforms(lock) } }), [])
})

test('an example is a block marked to run, with what it prints right after it', () => {
  const markdown = [
    '# A',
    '```ts',
    'skipped',
    '```',
    '```ts run',
    'first()',
    '```',
    '',
    '```text',
    'one',
    '```',
    '```ts run',
    'second()',
    '```',
  ]
  assert.deepEqual(examplesIn('a.md', markdown.join('\n')), [
    { file: 'a.md', line: 6, code: 'first()\n', prints: 'one\n' },
    { file: 'a.md', line: 13, code: 'second()\n' },
  ])
})

test('a block of text further down is not the output of an example', () => {
  const markdown = ['```ts run', 'first()', '```', 'Prose.', '', 'More prose.', '```text', 'one', '```']
  assert.deepEqual(examplesIn('a.md', markdown.join('\n')), [{ file: 'a.md', line: 2, code: 'first()\n' }])
})

test('links to files are found from the folder of their document, and not in code', () => {
  const markdown = [
    '[a](a.md#part) and [b](../b/)',
    '[web](https://example.org/x) [here](#part) `[code](c.md)`',
    '```',
    '[d](d.md)',
    '```',
    '![e](plots/e.svg)',
  ]
  assert.deepEqual(linkedFiles('docs/x.md', markdown.join('\n')), ['docs/a.md', 'b/', 'docs/plots/e.svg'])
})

test('state of a module is found, and constants are not', () => {
  const kept = [
    'let last = 0',
    'const warned = new Set<string>()',
    'const seen = new WeakMap()',
    "const OWN = Symbol('own')",
    'const watch = new Watch()',
  ]
  const constant = [
    "const NAMES = new Set(['a'])",
    "const OWN = Symbol.for('own')",
    "const warned = onceInProcess('warned', () => new Set())",
    'const MOST = 3',
  ]
  for (const line of kept) assert.equal(moduleState('a.ts', line).length, 1, line)
  for (const line of constant) assert.deepEqual(moduleState('a.ts', line), [], line)
  assert.deepEqual(moduleState('a.ts', 'function fn() { let last = 0; const warned = new Set() }'), [])
})

test('links of a packed page lead to packed files, and other links become plain text', () => {
  const page = '[a](a.md#part) [b](../b.md) [web](https://example.com) [here](#here) ![plot](plots/x.svg) [tiers](../examples/tiers.mjs)'
  assert.equal(
    linksWithin('guide.md', page, (file) => file === 'a.md'),
    '[a](a.md#part) b [web](https://example.com) [here](#here)  tiers',
  )
})

longTest('a workflow with a fault is refused, and one that runs a script that is not there', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'sluicegate-gate-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const lint = (job: string): readonly string[] => {
    writeFileSync(join(folder, 'ci.yml'), `on: push\njobs:\n  test:\n    ${job}\n`)
    return faultsOfCommand(process.execPath, ['tools/dist/lint-workflows.js', join(folder, 'ci.yml')])
  }
  // The gate runs it over workflows without a fault.
  assert.deepEqual(lint('runs-on: ubuntu-latest\n    steps: [{ run: npm test }]'), [])
  const [fault = ''] = lint('runs-on: ubuntu-latest\n    step: [{ run: npm test }]')
  assert.match(fault, /ci\.yml:3:3: "steps" section is missing in job "test"/)
  const workflow = 'run: npm test\nrun: npm run check\nrun: npm run chekc -- --fast\nrun: npm ci'
  assert.deepEqual(unknownScripts('ci.yml', workflow, ['test', 'check']), ['ci.yml runs "npm run chekc", which is not there'])
})

test('an action that is not pinned by its commit is refused', () => {
  const commit = '0123456789abcdef0123456789abcdef01234567'
  assert.deepEqual(unpinnedActions('ci.yml', `      - uses: actions/checkout@${commit} # v5.0.0\n`), [])
  for (const action of ['actions/checkout@v5', `actions/checkout@${commit}`])
    assert.match(unpinnedActions('ci.yml', `      - uses: ${action}\n`)[0] ?? '', /pin it by its commit/)
})

test('a package that is not what its registry signed is refused, and a registry without signatures is not', () => {
  assert.deepEqual(signatureFaults(0, 'audited 5 packages in 1s\n\n5 packages have verified registry signatures\n'), [])
  assert.equal(signatureFaults(1, '1 package has an invalid registry signature:\n\nx@1.0.0\n').length, 1)
  assert.equal(signatureFaults(1, '2 packages have missing registry signatures but the registry is providing signing keys:\n').length, 1)
  assert.deepEqual(signatureFaults(1, 'npm error code ENOTFOUND'), [])
})

test('a rule of Renovate that matches nothing is refused', () => {
  const rules = { packageRules: [{ matchPackageNames: ['yaml', 'yalm'], matchFileNames: ['package.json', 'a/**', 'b/**'] }] }
  const read = (): string => JSON.stringify({ devDependencies: { yaml: '1.0.0' } })
  assert.deepEqual(renovateFaults(JSON.stringify(rules), ['package.json', 'a/package.json'], read), [
    '.github/renovate.json: no package.json names yalm',
    '.github/renovate.json: no package.json is b/**',
  ])
})

/** A package with one entry point of these declarations. */
function apiOf(folder: string, files: Readonly<Record<string, string>>): string {
  const types = './dist/index.d.ts'
  mkdirSync(join(folder, 'dist'), { recursive: true })
  const manifest = { name: 'kit', type: 'module', bin: { kit: './dist/main.js' }, exports: { '.': { import: { types } } } }
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest))
  for (const [file, text] of Object.entries(files)) writeFileSync(join(folder, 'dist', file), text)
  return publicApi(folder)
}

test('the public API is what can be imported and the types it names, without comments, private members and places', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'sluicegate-api-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const index = "export { b, A } from './a.js'\n"
  const a = [
    "import type { Hidden } from './hidden.js'",
    '/** Says something. */',
    'export declare class A { #x; private y; private constructor(); z(hidden: Hidden): void }',
    'export declare const b: import("./hidden.js").Hidden',
    'export declare const c: number',
  ]
  const hidden = 'export interface Hidden { n: number; }\nexport interface Unused { n: number; }'
  const api = apiOf(folder, { 'index.d.ts': index, 'a.d.ts': a.join('\n'), 'hidden.d.ts': hidden })
  assert.equal(
    api,
    [
      'program kit',
      '',
      '== kit (import) ==',
      'class A {',
      '    private constructor();',
      '    z(hidden: Hidden): void;',
      '}',
      'const b: Hidden;',
      '',
      '-- named by these exports, not exported --',
      'interface Hidden {',
      '    n: number;',
      '}',
      '',
    ].join('\n'),
  )
  const moved = a.join('\n').replaceAll('hidden.js', 'moved.js')
  assert.equal(apiOf(folder, { 'index.d.ts': index, 'a.d.ts': moved, 'moved.d.ts': hidden }), api)
})

test('a changed public API is refused with the changed lines and the command that records them', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'sluicegate-api-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const record = join(folder, 'kit.txt')
  writeFileSync(record, 'type A = 1;\ntype B = 2;\n')
  assert.deepEqual(apiFaults(record, 'type A = 1;\ntype B = 2;\n', join(folder, 'found')), [])
  const [fault = ''] = apiFaults(record, 'type A = 1;\ntype B = 3;\n', join(folder, 'found'))
  assert.match(fault, /differs from .*kit\.txt/)
  assert.match(fault, /\n-type B = 2;\n\+type B = 3;\n/)
  assert.match(fault, /npm run api/)
  const [unrecorded = ''] = apiFaults(join(folder, 'none.txt'), 'type A = 1;\n', join(folder, 'found'))
  assert.match(unrecorded, /\+type A = 1;/)
})
