import { readFileSync } from 'node:fs'
import ts from 'typescript'
import { trackedFiles } from './check-import-circles.js'

const PUBLISHED = /^packages\/sluicegate\/src\/(?!testing\/|.*\.(test|gen)\.ts$).*\.ts$/

/** State that may exist once for each form of the package, each with its reason. */
const EXCEPTIONS: Readonly<Record<string, string>> = {
  'packages/sluicegate/src/made-in-handler.ts: elsewhere': 'when to look more rarely, for each form by itself',
  'packages/sluicegate/src/memory/core-memory.ts: isShared': 'what the runtime can do, the same in both',
  'packages/sluicegate/src/memory/fingerprint.ts: drawn': 'random numbers, each of which is given out once',
  'packages/sluicegate/src/memory/fingerprint.ts: left': 'the same',
  'packages/sluicegate/src/outbound/limited-fetch.ts: aborts': 'listeners of its own form',
  'packages/sluicegate/src/headers/header-writer.ts: standard': 'a writer with a cache of its own',
  'packages/sluicegate/src/headers/partition-key.ts: pairs': 'digits, the same in both',
  'packages/sluicegate/src/memory/open-core.ts: closedCore': 'what the limiters of its own form find in the place of a closed core',
  'packages/sluicegate/src/memory/fingerprint.ts: low': 'the second answer of one call',
  'packages/sluicegate/src/memory/fingerprint.ts: high': 'the same',
  'packages/sluicegate/src/memory/memory-permit-limiter.ts: shrink': 'a door into a class, for those of its own form',
  'packages/sluicegate/src/memory/open-core.ts: sleeper': 'a cell to wait on, which holds nothing',
  'packages/sluicegate/src/policy/calendar.ts: formatters': 'a cache of what the runtime makes',
}

/** Values at the top of a module that never change, or hold no state. */
const UNCHANGING = /^(TextEncoder|TextDecoder|RegExp|\w+Array|ArrayBuffer|DataView)$/
/** Collections: those made with contents are constants. */
const COLLECTION = /^(Map|Set)$/

/** State of modules that would exist twice in a process that loads both forms of the package. */
export function checkModuleState(): string[] {
  const found = trackedFiles(PUBLISHED).flatMap((file) => moduleState(file, readFileSync(file, 'utf8')))
  const stale = Object.keys(EXCEPTIONS).filter((name) => !found.includes(name))
  return [
    ...found.filter((name) => EXCEPTIONS[name] === undefined).map((name) => `${name} is state of a module: make it by onceInProcess()`),
    ...stale.map((name) => `${name} needs no exception any more`),
  ]
}

/** Names at the top of a module that can change or are compared by identity: `let`, what is made by `new`, symbols of its own. */
export function moduleState(file: string, source: string): string[] {
  const { statements } = ts.createSourceFile(file, source, ts.ScriptTarget.Latest)
  return statements.filter(ts.isVariableStatement).flatMap(({ declarationList }) => {
    const isLet = (declarationList.flags & ts.NodeFlags.Const) === 0
    const changing = declarationList.declarations.filter(({ initializer }) => isLet || isState(initializer))
    return changing.map(({ name }) => `${file}: ${ts.isIdentifier(name) ? name.text : 'a pattern'}`)
  })
}

function isState(value: ts.Expression | undefined): boolean {
  if (value === undefined) return false
  if (ts.isCallExpression(value)) return ts.isIdentifier(value.expression) && value.expression.text === 'Symbol'
  if (!ts.isNewExpression(value) || !ts.isIdentifier(value.expression)) return false
  const { text } = value.expression
  return !(UNCHANGING.test(text) || (COLLECTION.test(text) && (value.arguments ?? []).length > 0))
}
