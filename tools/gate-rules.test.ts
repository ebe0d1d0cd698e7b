import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileSizeFaults, fileSizeWarnings } from './check-file-sizes.js'
import { lockfileFaults } from './check-lockfiles.js'
import { moduleState } from './check-module-state.js'
import { missingPlatforms } from './lockfile-platforms.js'
import { examplesIn } from './markdown-examples.js'
import { linkedFiles } from './markdown-links.js'
import { linksWithin } from './packed-docs.js'

test('a file of 401 lines is warned about and is no fault', () => {
  const sizes = [1, 120, 400, 2, 401].map((lines) => [`${lines}.ts`, lines] as const)
  assert.deepEqual(fileSizeFaults(sizes), [])
  assert.deepEqual(fileSizeWarnings(sizes), ['401.ts has 401 lines, over 400: is it one idea?'])
})

test('half of the files may have at most 120 lines', () => {
  const sizes = [1, 121, 122].map((lines, index) => [`${index}.ts`, lines] as const)
  assert.deepEqual(fileSizeFaults(sizes), ['The median file has 121 lines, over 120'])
})

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

test('a block of text further down is not what an example prints', () => {
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

test('what a module keeps to itself is found, and constants are not', () => {
  const kept = [
    'let last = 0',
    'const told = new Set<string>()',
    'const seen = new WeakMap()',
    "const OWN = Symbol('own')",
    'const watch = new Watch()',
  ]
  const constant = [
    "const NAMES = new Set(['a'])",
    "const OWN = Symbol.for('own')",
    "const told = onceInProcess('told', () => new Set())",
    'const MOST = 3',
  ]
  for (const line of kept) assert.equal(moduleState('a.ts', line).length, 1, line)
  for (const line of constant) assert.deepEqual(moduleState('a.ts', line), [], line)
  assert.deepEqual(moduleState('a.ts', 'function fn() { let last = 0; const told = new Set() }'), [])
})

test('links of a packed page lead to what is packed, and of others the words stay', () => {
  const page =
    '[a](a.md#part) [b](../b.md) [web](https://example.com) [here](#here) ![plot](plots/x.svg) ![page](images/page.png) [tiers](../examples/tiers.mjs)'
  const packed = linksWithin('guide.md', page, (file) => ['a.md', 'images/page.png'].includes(file))
  assert.equal(packed, '[a](a.md#part) b [web](https://example.com) [here](#here)  ![page](images/page.png) [tiers](examples/tiers.mjs)')
  assert.equal(
    linksWithin('policies/gcra.md', '[x](../../examples/take.mjs)', () => false),
    '[x](../examples/take.mjs)',
  )
})
