import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import ts from 'typescript'
import { trackedFiles } from './check-import-circles.js'
import { configOptions, exampleOf } from './config-options.js'
import { missingOf, optionsPage } from './options-page.js'

/** What users get; compiled by either compiler tests and tools do the same. */
const SOURCE = /^(?<folder>packages\/(?:sluicegate|config|commands|server)\/)src\/(?<path>(?!.*\.test\.).+)\.ts$/

const known = new Map<string, ts.CompilerOptions>()

/** What the project of a file says. */
function optionsOf(project: string): ts.CompilerOptions {
  const host = { ...ts.sys, onUnRecoverableConfigFileDiagnostic: () => assert.fail(project) }
  const options = known.get(project) ?? ts.getParsedCommandLineOfConfigFile(project, { module: ts.ModuleKind.ESNext }, host)?.options ?? {}
  known.set(project, options)
  return options
}

test('the compiler in native code writes what the one in JavaScript writes', () => {
  let compared = 0
  const others = trackedFiles(SOURCE).filter((source) => {
    const { folder = '', path } = source.match(SOURCE)?.groups ?? {}
    const file = `${folder}dist/${path}.js`
    if (!existsSync(file)) return false
    compared++
    const compilerOptions = optionsOf(`${folder}tsconfig.json`)
    const { outputText } = ts.transpileModule(readFileSync(source, 'utf8'), { compilerOptions, fileName: source })
    return outputText !== readFileSync(file, 'utf8')
  })
  assert.deepEqual(others, [])
  assert.ok(compared > 600, `${compared} files`)
})

test('the page has a heading for each option with type, default, example and link', () => {
  const entries = optionsPage().split('\n### ').slice(1)
  assert.ok(entries.length > 180)
  for (const entry of entries) {
    const [heading, , about = '', , what = '', , example = ''] = entry.split('\n')
    assert.match(about, /, (?:\[required\]\(\S+\)|\[default\]\(\S+\) .+)\.$/, heading)
    // An example that shows several options stands with the first of them.
    assert.ok(what.length > 10 && (example === '' || example.startsWith('#') || /^`.+`$/.test(example)), heading)
  }
})

test('every option of the schema is on the page', () => {
  const page = optionsPage()
  const paths = new Set(page.split('\n').flatMap((line) => line.match(/^### (?<paths>.+)$/)?.groups?.paths?.split(', ') ?? []))
  const schema = JSON.parse(readFileSync('packages/server/schema/sluicegate.json', 'utf8')) as { properties: Record<string, object> }
  for (const section of Object.keys(schema.properties)) assert.match(page, new RegExp(`\n### ${section}\\b`), section)
  for (const { path } of configOptions()) assert.ok(paths.has(path), path)
})

test('an option without a description, a default or an example is a fault', () => {
  const option = { path: 'stop.drain', type: 'duration', what: '', byDefault: '', example: '', link: '' }
  assert.deepEqual(missingOf(option), [
    'sluicegate.json: stop.drain has no description',
    'sluicegate.json: stop.drain has no default (@defaultValue)',
    'sluicegate.json: stop.drain has no example (@example)',
  ])
  assert.deepEqual(missingOf({ ...option, what: 'a', byDefault: 'b', example: 'c' }), [])
})

test('an example of the configuration file shows the last level', () => {
  assert.equal(exampleOf('storage.redis.prefix', 'eu'), 'prefix: eu')
  assert.equal(exampleOf('tokens[].name', 'a:b'), 'name: "a:b"')
  assert.equal(exampleOf('policies.NAME.limit', 5), 'limit: 5')
})
