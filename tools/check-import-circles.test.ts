import assert from 'node:assert/strict'
import { test } from 'node:test'
import { circleFaults, folderCircleFaults, importGraph } from './check-import-circles.js'

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
