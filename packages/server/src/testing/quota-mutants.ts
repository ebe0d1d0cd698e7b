import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { BudgetClass } from './quota-history.js'

/** A fault that random histories have to find: one text of a compiled file, and what it becomes. */
export interface QuotaMutant {
  readonly name: string
  readonly file: 'quota-budget.js' | 'burst-ledger.js' | 'holder.js'
  readonly from: string
  readonly to: string
}

export const QUOTA_MUTANTS: readonly QuotaMutant[] = [
  {
    name: 'a broken stream gives back at once',
    file: 'quota-budget.js',
    from: 'holder.goneUntilMs = Math.max(nowMs, holder.inForce?.expiresByMs ?? 0, mayArrive)',
    to: 'holder.goneUntilMs = nowMs',
  },
  {
    name: 'what was on its way when the stream broke does not arrive',
    file: 'quota-budget.js',
    from: 'holder.sent !== undefined ? nowMs + this.#longestMs : 0',
    to: '0',
  },
  {
    name: 'a cut is free before it has arrived',
    file: 'holder.js',
    from: 'return Math.max(this.inForce?.tokensPerFill ?? 0, this.sent?.tokensPerFill ?? 0)',
    to: 'return this.latest?.tokensPerFill ?? 0',
  },
  { name: 'new buckets are not paid', file: 'quota-budget.js', from: 'this.#ledger.pay(paid)', to: 'paid = 0' },
  {
    name: 'renewals that arrive late are not paid',
    file: 'quota-budget.js',
    from: 'nowMs < inForce.expiresFromMs',
    to: 'true',
  },
  { name: 'payments are not held until they arrive', file: 'burst-ledger.js', from: 'this.#capacity - this.#held, this.#level + tokens', to: 'this.#capacity, this.#level + tokens' },
  {
    name: 'assigned rates fill the ledger, too',
    file: 'quota-budget.js',
    from: 'this.#numbers.ratePerSecond - this.assignedPerSecond * (1 + PACE)',
    to: 'this.#numbers.ratePerSecond',
  },
  {
    name: 'the end is counted from the sending',
    file: 'quota-budget.js',
    from: 'expiresByMs: nowMs + this.#longestMs',
    to: 'expiresByMs: sent.sentAtMs + this.#longestMs',
  },
  {
    name: 'an assignment that may have ended is renewed for nothing',
    file: 'quota-budget.js',
    from: 'const isEnded = nowMs >= inForce.expiresFromMs',
    to: 'const isEnded = false',
  },
  {
    name: 'buckets are as large as the ledger pays',
    file: 'quota-budget.js',
    from: 'Math.min(this.#tokensFor(tokensPerFill), 1 + Math.floor(room))',
    to: 'this.#numbers.burst',
  },
  { name: 'a restarted service assigns at once', file: 'quota-budget.js', from: 'if (nowMs < this.#quietUntilMs)', to: 'if (false)' },
  {
    name: 'a restarted service begins with a full ledger',
    file: 'quota-budget.js',
    from: 'options.quietUntilMs === undefined ? Number.POSITIVE_INFINITY : 0',
    to: 'Number.POSITIVE_INFINITY',
  },
  {
    name: 'rates are given beyond the budget',
    file: 'quota-budget.js',
    from: 'Math.min(lack + surplus / (2 * short.length), free)',
    to: 'lack',
  },
  {
    name: 'timers that fire late are not allowed for',
    file: 'quota-budget.js',
    from: 'this.#ttlMs * (1 + PACE) + EXPIRY_SLACK_MS',
    to: 'this.#ttlMs',
  },
]

/** The budget with a fault: the compiled folder, copied, with one text changed. */
export async function faultyBudget({ file, from, to }: QuotaMutant): Promise<BudgetClass> {
  const compiled = fileURLToPath(new URL('../quota/', import.meta.url))
  const folder = mkdtempSync(join(tmpdir(), 'quota-mutant-'))
  try {
    for (const name of readdirSync(compiled)) if (/^(?!.*\.test\.).*\.js$/.test(name)) cpSync(join(compiled, name), join(folder, name))
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
    const source = readFileSync(join(folder, file), 'utf8')
    if (!source.includes(from)) throw new Error(`${file} does not contain: ${from}`)
    writeFileSync(join(folder, file), source.replace(from, to))
    const { QuotaBudget } = (await import(pathToFileURL(join(folder, 'quota-budget.js')).href)) as { QuotaBudget: BudgetClass }
    return QuotaBudget
  } finally {
    rmSync(folder, { recursive: true })
  }
}
