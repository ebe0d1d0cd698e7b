import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { BudgetClass } from './quota-history.js'

/** A fault that random histories have to find: texts of a compiled file, and what they become. */
export interface QuotaMutant {
  readonly name: string
  readonly file: 'quota-budget.js' | 'holder.js'
  readonly edits: readonly (readonly [from: string, to: string])[]
  /** The first of the random histories that finds it. */
  readonly seed: number
}

const inFile =
  (file: QuotaMutant['file']) =>
  (name: string, seed: number, ...edits: QuotaMutant['edits']): QuotaMutant => ({ name, file, edits, seed })
const inBudget = inFile('quota-budget.js')
const inHolder = inFile('holder.js')

export const QUOTA_MUTANTS: readonly QuotaMutant[] = [
  inBudget('a broken stream gives back at once', 13, [
    'holder.goneUntilMs = Math.max(nowMs, holder.inForce?.expiresByMs ?? 0, mayArrive)',
    'holder.goneUntilMs = nowMs',
  ]),
  inBudget('what was on its way when the stream broke does not arrive', 275, [
    'holder.sent !== undefined ? nowMs + this.#longestMs : 0',
    '0',
  ]),
  inHolder('a cut is free before it has arrived', 372, [
    'return Math.max(this.inForce?.tokensPerFill ?? 0, this.sent?.tokensPerFill ?? 0)',
    'return this.latest?.tokensPerFill ?? 0',
  ]),
  inBudget('new buckets are not paid', 4, ['this.#ledger.pay(paid)', 'paid = 0']),
  inBudget('assigned rates fill the ledger, too', 26, [
    'this.#numbers.ratePerSecond - this.assignedPerSecond * (1 + PACE)',
    'this.#numbers.ratePerSecond',
  ]),
  inBudget('the end is counted from the sending', 2992, [
    'expiresByMs: nowMs + this.#longestMs',
    'expiresByMs: sent.sentAtMs + this.#longestMs',
  ]),
  inBudget('buckets are as large as the ledger pays', 31, [
    'Math.min(this.#tokensFor(tokensPerFill), 1 + Math.floor(room))',
    'this.#numbers.burst',
  ]),
  inBudget(
    'a restarted service assigns at once',
    80,
    ['options.quietUntilMs ?? Number.NEGATIVE_INFINITY', 'Number.NEGATIVE_INFINITY'],
    ['options.quietUntilMs === undefined ? Number.POSITIVE_INFINITY : 0', 'Number.POSITIVE_INFINITY'],
    ['options.quietUntilMs ?? nowMs', 'nowMs'],
  ),
  inBudget('rates are given beyond the budget', 1, ['Math.min(lack + surplus / (2 * short.length), free)', 'lack']),
  inBudget('what comes back has nothing in force', 870, ['holder.inForce = (inForce ?? latest) && {', 'holder.inForce = undefined && {']),
  inBudget('timers that fire late are not allowed for', 275, ['ttlSeconds * 1_000 * (1 + PACE) + EXPIRY_SLACK_MS', 'ttlSeconds * 1_000']),
]

/** The budget with a fault: the compiled folder, copied, with one text changed. */
export async function faultyBudget({ file, edits }: QuotaMutant): Promise<BudgetClass> {
  const compiled = fileURLToPath(import.meta.resolve('sluicegate-server/dist/quota/'))
  const folder = mkdtempSync(join(tmpdir(), 'quota-mutant-'))
  try {
    for (const name of readdirSync(compiled)) if (/^(?!.*\.test\.).*\.js$/.test(name)) cpSync(join(compiled, name), join(folder, name))
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
    let source = readFileSync(join(folder, file), 'utf8')
    for (const [from, to] of edits) {
      if (!source.includes(from)) throw new Error(`${file} does not contain: ${from}`)
      source = source.replace(from, to)
    }
    writeFileSync(join(folder, file), source)
    const { QuotaBudget } = (await import(pathToFileURL(join(folder, 'quota-budget.js')).href)) as { QuotaBudget: BudgetClass }
    return QuotaBudget
  } finally {
    rmSync(folder, { recursive: true })
  }
}
