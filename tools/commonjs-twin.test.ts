import assert from 'node:assert/strict'
import { test } from 'node:test'
import { commonJsTwin, liveNamesOf, reachableFrom } from './commonjs-twin.js'
import { readingShared, sharedText } from './shared-text.js'

/** Runs a module of the CommonJS form. */
function required(code: string, modules: Readonly<Record<string, unknown>> = {}): unknown {
  const module = { exports: {} as unknown }
  new Function('module', 'exports', 'require', code)(module, module.exports, (name: string) => modules[name])
  return module.exports
}

test('a twin imports and exports the same names, and its text is the same between them', () => {
  const body = 'const sum=(x)=>x+b+c;class Named{}'
  const twin = commonJsTwin(`import{a as b,c}from"./x.js";import"./y.js";${body}export{sum as s,Named};`)
  assert.ok(twin.includes(body))
  const { s, Named } = required(twin, { './x.js': { a: 1, c: 2 } }) as { s(x: number): number; Named: { name: string } }
  assert.deepEqual([s(3), Named.name], [6, 'Named'])
})

test('names that a module passes on are found by reading its twin, as Node does', () => {
  const twin = commonJsTwin('export{a as b}from"./x.js";export{c}from"./y.js";')
  assert.match(twin, /exports\.b = .*\nexports\.c = /)
  assert.deepEqual(required(twin, { './x.js': { a: 1 }, './y.js': { c: 2 } }), { b: 1, c: 2 })
})

test('a default alone is what require returns, beside others it says that it stands for an ES module', () => {
  assert.equal(required(commonJsTwin('const a=7;export{a as default};')), 7)
  const both = required(commonJsTwin('const a=7;export{a,a as default};')) as { __esModule: boolean; default: number }
  assert.deepEqual([both.__esModule, both.default], [true, 7])
})

test('a binding that its module changes is read as it is at each use, and names that hide it are left alone', () => {
  const from = 'let l=1,h=2;function set(x){l=x;h=l+1}export{l as low,h,set};'
  assert.deepEqual([...liveNamesOf(from)], ['low', 'h'])
  const source = required(commonJsTwin(from)) as { set(x: number): void }
  const code = 'import{low as a,h,set}from"./x.js";const f=()=>[a,h],g=()=>({a,h}),k=(a,h)=>a+h;export{f,g,k,set};'
  const twin = commonJsTwin(code, (module, name) => module === './x.js' && name !== 'set')
  const { f, g, k, set } = required(twin, { './x.js': source }) as Record<string, (...args: number[]) => unknown>
  set?.(40)
  assert.deepEqual([f?.(), g?.(), k?.(3, 4)], [[40, 41], { a: 40, h: 41 }, 7])
})

test('what has no twin is refused', () => {
  assert.throws(() => commonJsTwin('import*as x from"./x.js";'), /imported whole/)
  assert.throws(() => commonJsTwin('export*from"./x.js";'), /has no twin/)
  assert.throws(() => commonJsTwin('let a=1;const f=()=>{a+=2};export{a,f};'), /changes otherwise than by =/)
  assert.throws(() => reachableFrom(['a'], (file) => [file === 'a' ? 'b' : 'a']), /a -> b -> a: a circle/)
})

test('files that an entry point imports through others are reachable from it', () => {
  const imports: Readonly<Record<string, readonly string[]>> = { a: ['b'], b: ['c'], c: [], d: [] }
  assert.deepEqual([...reachableFrom(['a'], (file) => imports[file] ?? [])].sort(), ['a', 'b', 'c'])
})

test('constants stand once, and modules of both forms read them', () => {
  const shared = sharedText('shared/texts.js', 'const x="long";export{x as TEXT};')
  assert.doesNotMatch(shared.script, /import|export/)
  const module = 'import{TEXT as t}from"../shared/texts.js";const doubled=t+t;export{doubled};'
  const es = readingShared('redis/index.js', module, 'dist', [shared])
  assert.match(es, /^import "\.\.\/commonjs\/shared\/texts\.js";/)
  const twin = commonJsTwin(readingShared('redis/index.js', module, 'dist/commonjs', [shared]))
  assert.match(twin, /require\("\.\.\/shared\/texts\.js"\);/)
  new Function(shared.script)()
  assert.deepEqual(required(twin), { doubled: 'longlong' })
})
