import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import ts from 'typescript'

const FOLDER = '.cache/declared-names'
/** A module of a user that exports what the library makes, without a type of its own. */
const MODULE = `
import { allOf, concurrency, createLimiter, createQueue, firstOf, levels, type Policy, slowDown, tokenBucket } from 'sluicegate'
import { serveLimiter } from 'sluicegate/cluster'
import { durableObjects, limiterObject } from 'sluicegate/durable-objects'
import { rateLimit as express } from 'sluicegate/express'
import { rateLimit as fetching } from 'sluicegate/fetch'
import { createGate } from 'sluicegate/gate'
import { rateLimit as hono } from 'sluicegate/hono'
import { readRateLimit } from 'sluicegate/http'
import { address, apiKey } from 'sluicegate/keys'
import { createLedger } from 'sluicegate/ledger'
import { limited, limitedFetch } from 'sluicegate/outbound'
import { postgres } from 'sluicegate/postgres'
import { prices } from 'sluicegate/prices'
import { createRateTable } from 'sluicegate/rate-table'
import { redis } from 'sluicegate/redis'
import { region } from 'sluicegate/regions'
import { casStore } from 'sluicegate/store'
declare const any: never
export const policy = tokenBucket({ limit: 1, window: '1s' })
export const policies = [allOf([policy, policy]), levels({ a: policy }), concurrency({ limit: 1 })]
export const makeLimiter = <P extends Policy>(own: P) => createLimiter(own)
export const limiters = [createLimiter(policy), createLimiter(policy, { overrides: true }), createLimiter(concurrency({ limit: 1 })), firstOf([])]
export const shared = createLimiter(policy, { store: redis(any), overrides: true })
export const around = [slowDown(any, any), createQueue(any), serveLimiter(policy), createLedger(any), prices(any), createGate(any), createRateTable()]
export const stores = [redis(any), postgres(any), casStore(any), region(any), durableObjects(any, any)]
export const edges = [express(policy), hono(policy), fetching(policy), fetching(policy).wrap(() => new Response()), limiterObject([policy])]
export const outbound = [limited(), limitedFetch(fetch)]
export const read = () => [readRateLimit(new Headers()), createLimiter(policy).take('a'), createLimiter(policy).hotKeys(), address(), apiKey()]
`

test('declaration files of users can name what the library makes', () => {
  mkdirSync(FOLDER, { recursive: true })
  writeFileSync(`${FOLDER}/package.json`, '{ "type": "module" }')
  writeFileSync(`${FOLDER}/made.ts`, MODULE)
  const options: ts.CompilerOptions = {
    declaration: true,
    module: ts.ModuleKind.NodeNext,
    target: ts.ScriptTarget.ES2022,
    lib: ['lib.es2022.d.ts', 'lib.dom.d.ts', 'lib.esnext.disposable.d.ts'],
    strict: true,
    skipLibCheck: true,
    types: [],
  }
  const program = ts.createProgram([`${FOLDER}/made.ts`], options)
  const faults = [...ts.getPreEmitDiagnostics(program), ...program.getDeclarationDiagnostics()]
  assert.deepEqual(
    faults.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n')),
    [],
  )
})
