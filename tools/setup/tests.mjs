import { relative, resolve } from 'node:path'
import { Refusal } from './refusal.mjs'
import { ROOT, sourcesBelow } from './root.mjs'

/** Tests that `npm test` has no time for. */
const LONG = '.long.test.ts'

/**
 * The compiled test files, and what to hand to `node --test`. Arguments that begin with a dash go to Node; the others are
 * folders or files, sources or compiled, and only the tests below them run: the long ones, or all others.
 */
export function chooseTests(args, { long = false } = {}) {
  const wanted = args.filter((arg) => !arg.startsWith('-')).map((arg) => relative(ROOT, resolve(ROOT, arg)))
  // From the sources, so that what is left in dist of a test that was deleted does not run.
  const all = ['packages', 'tools', 'bench', 'chaos']
    .flatMap(sourcesBelow)
    .filter((file) => file.endsWith('.test.ts') && file.endsWith(LONG) === long)
  const chosen = all.filter((file) => wanted.length === 0 || wanted.some((path) => isBelow(file, path) || isBelow(compiled(file), path)))
  if (chosen.length === 0) throw new Refusal(`No ${long ? 'long tests' : 'test files'} below ${wanted.join(', ') || 'this folder'}`)
  return { files: chosen.map(compiled), nodeOptions: args.filter((arg) => arg.startsWith('-')) }
}

/** The program of a longer proof: prove-<name>.ts, wherever it stands. */
export function chooseProof(name) {
  const proofs = new Map()
  for (const file of sourcesBelow('packages')) {
    const [, found] = file.match(/\/prove-([^/]+)\.ts$/) ?? []
    if (found !== undefined) proofs.set(found, compiled(file))
  }
  if (proofs.has(name)) return proofs.get(name)
  throw new Refusal(`${name === undefined ? 'Say what to prove' : `Nothing proves "${name}"`}; there are ${[...proofs.keys()].join(', ')}`)
}

/** packages/a/src/b.test.ts is compiled to packages/a/dist/b.test.js, tools/b.test.ts to tools/dist/b.test.js. */
function compiled(file) {
  const inPackage = file.replace(/^(packages\/[^/]+|bench|chaos)\/src\//, '$1/dist/').replace(/^tools\//, 'tools/dist/')
  return inPackage.replace(/\.ts$/, '.js')
}

function isBelow(file, path) {
  return path === '' || file === path || file.startsWith(`${path}/`)
}
