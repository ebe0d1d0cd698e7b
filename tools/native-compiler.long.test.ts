import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import ts from 'typescript'
import { trackedFiles } from './imports-of.js'

const SOURCE = /^(?<folder>(?:packages\/[^/]+|bench|chaos|lab|site|deploy)\/)src\/(?<path>.+?)(?<test>\.test)?\.ts$/

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
    const { folder = '', path, test: kind = '' } = source.match(SOURCE)?.groups ?? {}
    const file = `${folder}dist/${path}${kind}.js`
    if (!existsSync(file)) return false
    compared++
    const ofTests = `${folder}tsconfig.test.json`
    const compilerOptions = optionsOf(kind !== '' && existsSync(ofTests) ? ofTests : `${folder}tsconfig.json`)
    const { outputText } = ts.transpileModule(readFileSync(source, 'utf8'), { compilerOptions, fileName: source })
    return outputText !== readFileSync(file, 'utf8')
  })
  assert.deepEqual(others, [])
  assert.ok(compared > 1000, `${compared} files`)
})
