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

export const QUOTA_MUTANTS: readonly QuotaMutant[] = [
  {
    name: 'a broken stream gives back at once',
    file: 'quota-budget.js',
    edits: [['holder.goneUntilMs = Math.max(nowMs, holder.inForce?.expiresByMs ?? 0, mayArrive)', 'holder.goneUntilMs = nowMs']],
    seed: 13,
  },
  {
    name: 'what was on its way when the stream broke does not arrive',
    file: 'quota-budget.js',
    edits: [['holder.sent !== undefined ? nowMs + this.#longestMs : 0', '0']],
    seed: 275,
  },
  {
    name: 'a cut is free before it has arrived',
    file: 'holder.js',
    edits: [['return Math.max(this.inForce?.tokensPerFill ?? 0, this.sent?.tokensPerFill ?? 0)', 'return this.latest?.tokensPerFill ?? 0']],
    seed: 281,
  },
  { name: 'new buckets are not paid', file: 'quota-budget.js', edits: [['this.#ledger.pay(paid)', 'paid = 0']], seed: 4 },
  {
    name: 'assigned rates fill the ledger, too',
    file: 'quota-budget.js',
    edits: [['this.#numbers.ratePerSecond - this.assignedPerSecond * (1 + PACE)', 'this.#numbers.ratePerSecond']],
    seed: 26,
  },
  {
    name: 'the end is counted from the sending',
    file: 'quota-budget.js',
    edits: [['expiresByMs: nowMs + this.#longestMs', 'expiresByMs: sent.sentAtMs + this.#longestMs']],
    seed: 2992,
  },
  {
    name: 'buckets are as large as the ledger pays',
    file: 'quota-budget.js',
    edits: [['Math.min(this.#tokensFor(tokensPerFill), 1 + Math.floor(room))', 'this.#numbers.burst']],
    seed: 31,
  },
  {
    name: 'a restarted service assigns at once',
    file: 'quota-budget.js',
    edits: [
      ['options.quietUntilMs ?? Number.NEGATIVE_INFINITY', 'Number.NEGATIVE_INFINITY'],
      ['options.quietUntilMs === undefined ? Number.POSITIVE_INFINITY : 0', 'Number.POSITIVE_INFINITY'],
      ['options.quietUntilMs ?? nowMs', 'nowMs'],
    ],
    seed: 80,
  },
  {
    name: 'rates are given beyond the budget',
    file: 'quota-budget.js',
    edits: [['Math.min(lack + surplus / (2 * short.length), free)', 'lack']],
    seed: 1,
  },
  {
    name: 'timers that fire late are not allowed for',
    file: 'quota-budget.js',
    edits: [['ttlSeconds * 1_000 * (1 + PACE) + EXPIRY_SLACK_MS', 'ttlSeconds * 1_000']],
    seed: 275,
  },
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
