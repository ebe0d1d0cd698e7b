import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { boundaryFaults } from './boundaries.js'
import { renovateFaults, unknownScripts, unpinnedActions } from './check-github.js'
import { circleFaults, folderCircleFaults, importGraph, trackedFiles } from './check-import-circles.js'
import { moduleState } from './check-module-state.js'
import { apiFaults } from './check-public-api.js'
import { faultsOfCommand } from './faults-of-command.js'
import { lockfileFaults, missingPlatforms, signatureFaults } from './lockfile-platforms.js'
import { longTest } from './long-test.js'
import { anchorsOf, examplesIn, linkedFiles, linkedHeadings } from './markdown-examples.js'
import { linksWithin } from './packed-docs.js'
import { publicApi } from './public-api.js'
import { releaseNotes } from './shared-text.js'

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

function faultsOf(sources: Record<string, string>): string[] {
  return circleFaults(importGraph(new Map(Object.entries(sources))))
}

function folderFaultsOf(sources: Record<string, string>): string[] {
  return folderCircleFaults(importGraph(new Map(Object.entries(sources))))
}

test('files that import each other are a fault, over any number of files', () => {
  const [fault, ...others] = faultsOf({
    'src/a.ts': "import { b } from './deep/b.js'",
    'src/deep/b.ts': "export * from '../c.js'",
    'src/c.ts': "const a = await import('./a.js')",
    'src/d.ts': "import { a } from './a.js'",
  })
  assert.deepEqual(others, [])
  assert.match(fault ?? '', /^3 files import each other/)
  for (const edge of ['src/a.ts imports src/deep/b.ts', 'src/deep/b.ts imports src/c.ts', 'src/c.ts imports src/a.ts']) {
    assert.ok(fault?.includes(edge), edge)
  }
  assert.doesNotMatch(fault ?? '', /src\/d\.ts/)
})

test('each circle is a fault of its own', () => {
  const pair = (one: string, other: string): Record<string, string> => ({
    [`${one}.ts`]: `import './${other}.js'`,
    [`${other}.ts`]: `import './${one}.js'`,
  })
  assert.equal(faultsOf({ ...pair('a', 'b'), ...pair('c', 'd'), 'e.ts': "import './a.js'\nimport './c.js'" }).length, 2)
})

test('type-only imports count, and so does a file that imports itself', () => {
  assert.equal(faultsOf({ 'a.ts': "import type { B } from './b.js'", 'b.ts': "import { a } from './a.js'" }).length, 1)
  assert.equal(faultsOf({ 'a.ts': "import { a } from './a.js'" }).length, 1)
})

test('AssemblyScript names files without an extension', () => {
  const sources = {
    'assembly/table/find.ts': 'import { words } from "../words"',
    'assembly/words.ts': 'import { find } from "./table/find"',
  }
  assert.equal(faultsOf(sources).length, 1)
})

test('a file that several import, packages and files that are not there are no circle', () => {
  assert.deepEqual(
    faultsOf({
      'a.ts': "import './b.js'\nimport './c.js'",
      'b.ts': "import './d.js'\nimport 'node:fs'",
      'c.ts': "import './d.js'\nimport './gone.js'",
      'd.ts': '',
    }),
    [],
  )
})

test('folders that import each other are a fault, though no files do, over any number of folders and at any depth', () => {
  const [fault, ...others] = folderFaultsOf({
    'p/src/a/one.ts': "import '../b/deep/two.js'",
    'p/src/b/deep/two.ts': '',
    'p/src/b/three.ts': "import '../c/four.js'",
    'p/src/c/four.ts': '',
    'p/src/c/five.ts': "import '../a/six.js'",
    'p/src/a/six.ts': '',
  })
  assert.deepEqual(others, [])
  assert.match(fault ?? '', /^3 folders import each other in a circle, p\/src\/a, p\/src\/b, p\/src\/c/)
  assert.match(fault ?? '', /p\/src\/c\/five\.ts imports p\/src\/a\/six\.ts/)
})

test('tests, files beside folders, and folders of other packages make no circle of folders', () => {
  assert.deepEqual(
    folderFaultsOf({
      'p/src/a/one.ts': "import '../b/two.js'\nimport '../root.js'",
      'p/src/b/two.ts': '',
      'p/src/b/two.test.ts': "import '../a/one.js'",
      'p/src/root.ts': "import './b/two.js'",
      'q/src/b/three.ts': "import '../a/four.js'",
      'q/src/a/four.ts': '',
    }),
    [],
  )
})

const CORE = 'sluicegate/assembly/'
const LIMITER = 'sluicegate/src/limiter.ts'
const ORACLE = 'testkit/src/oracle/rate-oracle.ts'
const HTTP = 'server/src/protocols/http/take.ts'

const EXPRESS = 'sluicegate/src/adapters/express.ts'
const COMPATIBLE = 'sluicegate/src/compat/express-rate-limit/rate-limit.ts'

/** Files are those of `packages`. */
const CROSSINGS: readonly (readonly [what: string, file: string, source: string])[] = [
  ['a Node.js module in the library', LIMITER, "import { readFileSync } from 'node:fs'"],
  ['a Node.js module in the library, without its prefix', LIMITER, "import fs from 'fs'"],
  ['a dependency in the library', LIMITER, "import { z } from 'zod'"],
  ['a dynamic import in the library', LIMITER, "const zod = await import('zod')"],
  ['a re-export in the library', LIMITER, "export * from 'zod'"],
  ['a type of another package in the library', LIMITER, "export type Schema = import('zod').ZodType"],
  ['a path out of the library', LIMITER, "import { oracle } from '../../testkit/src/oracle.js'"],
  ['the core in the policy', 'sluicegate/src/policy/policy.ts', "import { loadCore } from '../memory/core.js'"],
  ['a table in the algorithms of the core', `${CORE}algorithms/gcra.ts`, 'import { find } from "../table/search"'],
  ['a folder in the shared files of the core', `${CORE}results.ts`, 'import { load } from "./atomics/atomics"'],
  ['the entrance in a table of the core', `${CORE}table/search.ts`, 'import { take } from "../index"'],
  ['the library in the oracle', ORACLE, "import { emissionOf } from 'sluicegate'"],
  ['the library among types in the oracle', ORACLE, "import { type Policy, emissionOf } from 'sluicegate'"],
  ['a limiter in the headers', 'sluicegate/src/headers/quota.ts', "import { createLimiter } from '../create-limiter.js'"],
  ['a limiter in the keys', 'sluicegate/src/keys/address.ts', "import { createLimiter } from '../create-limiter.js'"],
  ['a limiter in a protocol', HTTP, "import { createLimiter } from 'sluicegate'"],
  ['a protocol in another', HTTP, "import { encode } from '../resp/encoder.js'"],
  ['the inside of the library in the server', 'server/src/engine.ts', "import { load } from '../../sluicegate/src/memory/core.js'"],
  [
    'a shared limiter in the limiter in memory',
    'sluicegate/src/memory/core.ts',
    "import { CircuitBreaker } from '../shared/calls/circuit-breaker.js'",
  ],
  ['Redis in a lease', 'sluicegate/src/lease/key-lease.ts', "import type { Store } from '../redis/redis-scripts.js'"],
  [
    'a shared limiter in a lease',
    'sluicegate/src/lease/key-lease.ts',
    "import { CircuitBreaker } from '../shared/calls/circuit-breaker.js'",
  ],
  ['a channel in a shared limiter', 'sluicegate/src/shared/outage/outage.ts', "import { Inbox } from '../../cluster/channel.js'"],
  ['Redis behind a channel', 'sluicegate/src/cluster/channel.ts', "import { hashSlot } from '../redis/redis-keys.js'"],
  ['a channel in Redis', 'sluicegate/src/redis/store.ts', "import { Inbox } from '../cluster/channel.js'"],
  ['the testkit in the server', 'server/src/engine.ts', "import { oracle } from 'sluicegate-testkit'"],
  ['a helper of tests in the library', LIMITER, "import { ownRedis } from 'sluicegate-testkit/redis/own-redis.js'"],
  [
    'a type of such a helper in the library',
    'sluicegate/src/redis/store.ts',
    "import type { OwnRedis } from 'sluicegate-testkit/redis/own-redis.js'",
  ],
  ['a helper of tests in the server', 'server/src/engine.ts', "import { runService } from 'sluicegate-testkit/service/running-service.js'"],
  ['the service in a command', 'commands/src/service/top.ts', "import type { Sample } from 'sluicegate-server/dist/dashboard/sample.js'"],
  ['the service in a command, by its path', 'commands/src/load/a.ts', "import { Engine } from '../../../server/src/engine/engine.js'"],
  ['a command in the configuration', 'config/src/tls.ts', "import { UsageError } from 'sluicegate-commands/terminal/usage-error.js'"],
  ['a limiter in memory in a queue', 'sluicegate/src/queue/backlog.ts', "import { MemoryLimiter } from '../memory/memory-limiter.js'"],
  ['what builds keys in outbound requests', 'sluicegate/src/outbound/host.ts', "import { address } from '../keys/address.js'"],
  ['a policy in a sketch', 'sluicegate/src/gate/sketch.ts', "import type { PolicyNumbers } from '../policy/policy-numbers.js'"],
  ['a type that is no contract in a compatible interface', COMPATIBLE, "import type { Layers } from '../../layers/layers.js'"],
  ['a source of the library in the testkit', 'testkit/src/leases/a.ts', "import '../../../sluicegate/src/lease/grant.js'"],
  ['arithmetic of the library in an oracle', ORACLE, "import { emissionOf } from '../../../sluicegate/dist/policy/policy-numbers.js'"],
  ['the testkit in a folder of that name', 'sluicegate/src/redis/testing/a.ts', "import 'sluicegate-testkit'"],
  ['a framework in the library', LIMITER, "import type { Request } from 'express'"],
  ['a framework at run time in its adapter', EXPRESS, "import express from 'express'"],
  ['another framework in an adapter', EXPRESS, "import type { Context } from 'koa'"],
  ['a limiter in an adapter', EXPRESS, "import { createLimiter } from '../create-limiter.js'"],
  ['an adapter in another', EXPRESS, "import { rateLimit } from './koa.js'"],
  ['a part of an adapter in another', EXPRESS, "import { RateLimits } from './nest/rate-limits.js'"],
  [
    'an adapter in the middleware',
    'sluicegate/src/middleware/middleware.ts',
    "import type { RateLimitOptions } from '../adapters/express.js'",
  ],
  ['an adapter in a compatible interface', COMPATIBLE, "import { rateLimit } from '../../adapters/express.js'"],
  ['a framework at run time there', COMPATIBLE, "import express from 'express'"],
  ['another framework there', COMPATIBLE, "import type { Context } from 'koa'"],
  ['a store in the likeness of a middleware', COMPATIBLE, "import { redis } from '../../redis/redis.js'"],
  ['a compatible interface in the middleware', 'sluicegate/src/middleware/a.ts', "import '../compat/limiter-verbs.js'"],
  ['a benchmark in a test', 'sluicegate/src/limiter.test.ts', "import { run } from '../../../bench/src/harness.js'"],
]

for (const [what, file, source] of CROSSINGS) {
  test(`the boundary check finds ${what}`, () => {
    const faults = boundaryFaults(`packages/${file}`, `// first line\n${source}\n`)
    assert.notEqual(faults.length, 0)
    assert.match(faults[0] ?? '', new RegExp(`^packages/${file}:2 imports '`))
  })
}

const ALLOWED: readonly (readonly [what: string, file: string, source: string])[] = [
  ['an adapter the types of its framework', EXPRESS, "import type { Request } from 'express'"],
  ['the adapter of Nest its framework', 'sluicegate/src/adapters/nest/rate-limits.ts', "import { HttpException } from '@nestjs/common'"],
  ['an adapter its own parts', 'sluicegate/src/adapters/nest.ts', "import { RateLimits } from './nest/rate-limits.js'"],
  ['the library its own files', LIMITER, "import { loadCore } from './memory/core.js'"],
  ['a test of the library the testkit and Node.js', 'sluicegate/src/a.test.ts', "import 'node:test'; import 'sluicegate-testkit'"],
  ['a test what tests share', 'sluicegate/src/redis/a.test.ts', "import { ownRedis } from 'sluicegate-testkit/redis/own-redis.js'"],
  ['a command the configuration', 'commands/src/replay/a.ts', "import { readConfig } from 'sluicegate-config/read-config.js'"],
  ['a test of a command the service', 'commands/src/load/a.test.ts', "import 'sluicegate-testkit/service/running-service.js'"],
  ['a queue what all limiters have', 'sluicegate/src/queue/a.ts', "import type { Limiter } from '../limiter.js'"],
  ['the testkit the compiled library', 'testkit/src/leases/a.ts', "import { grant } from '../../../sluicegate/dist/lease/grant.js'"],
  ['the oracle types of the library', ORACLE, "import type { Policy } from 'sluicegate'; import { type Decision } from 'sluicegate'"],
  [
    'headers a policy',
    'sluicegate/src/headers/quota.ts',
    "import { toMs } from '../time/duration.js'; import type { Key } from '../limiter.js'",
  ],
  ['a protocol what HTTP says of decisions', HTTP, "import { rateLimitHeaders } from 'sluicegate/http'"],
  ['a protocol the engine', HTTP, "import { Engine } from '../../engine.js'; import { headers } from './headers.js'"],
]

for (const [what, file, source] of ALLOWED) {
  test(`the boundary check allows ${what}`, () => {
    assert.deepEqual(boundaryFaults(`packages/${file}`, source), [])
  })
}

test('a heading has the anchor that GitHub gives it', () => {
  const anchors = anchorsOf(
    '# `take(key)`: What, why?\n\n## Limits\n\n```sh\n# no heading\n```\n\n## Limits\n\n### A [link](b.md) & snake_case\n',
  )
  assert.deepEqual([...anchors], ['takekey-what-why', 'limits', 'limits-1', 'a-link--snake_case'])
})

test('links to headings are found in the document itself and in others, not in code or on the web', () => {
  const text = 'See [a](#one), [b](../x.md#two), [c](https://example.org/y.md#three), `[d](#four)` and [e](z.md).'
  assert.deepEqual(linkedHeadings('docs/policies/gcra.md', text), [
    { target: 'docs/policies/gcra.md', anchor: 'one' },
    { target: 'docs/x.md', anchor: 'two' },
  ])
})

test('every link to a heading in the documents leads to one', () => {
  for (const file of trackedFiles(/\.md$/)) {
    for (const { target, anchor } of linkedHeadings(file, readFileSync(file, 'utf8'))) {
      assert.ok(anchorsOf(readFileSync(target, 'utf8')).has(anchor), `${file}: ${target}#${anchor}`)
    }
  }
})

const CHANGELOG = `# Changelog

## [Unreleased]

## [0.2.0] - 2026-02-01

### Added

- A thing.

## [0.1.0] - 2026-01-01

- The first.
`

test('the notes of a release are the section of its version', () => {
  assert.equal(releaseNotes(CHANGELOG, '0.2.0'), '### Added\n\n- A thing.\n')
  assert.equal(releaseNotes(CHANGELOG, '0.1.0'), '- The first.\n')
})

test('a version without a section, and an empty one, have no notes', () => {
  assert.throws(() => releaseNotes(CHANGELOG, '0.3.0'), /no section "## \[0\.3\.0\]"/)
  assert.throws(() => releaseNotes(CHANGELOG, 'Unreleased'), /says nothing/)
})

test('each test that the threat model names is there', () => {
  const [, model = ''] = readFileSync('SECURITY.md', 'utf8').split('\n## Threat model\n')
  const rows =
    model
      .split('\n## ')[0]
      ?.match(/^\|.*\|$/gm)
      ?.slice(2) ?? []
  const named = rows.flatMap((row) => Array.from((row.split('|').at(-2) ?? '').matchAll(/`([^`]+)`/g), ([, name = '']) => name))
  assert.ok(named.length > 20, `${named.length} tests are named`)
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: Record<string, string> }
  const files = trackedFiles(/\.test\.ts$/)
  const absent = named.filter((name) =>
    name.startsWith('npm run ') ? scripts[name.slice('npm run '.length)] === undefined : !files.some((file) => file.includes(`/${name}.`)),
  )
  assert.deepEqual(absent, [])
})
