import { StoreError } from '../errors.js'
import type { Policy } from '../policy/policy.js'
import type { KeptOverrides, OverrideStore } from '../shared/layers/override-cache.js'
import type { CommandRunner } from './command-runner.js'
import type { RedisKeys } from './redis-keys.js'
import { runScript } from './run-script.js'
import { OVERRIDES_SCRIPT } from './scripts.gen.js'

/** The overrides of a limiter in Redis: one hash without expiry. `lua/scripts/overrides.lua` documents its fields. */
export class RedisOverrides implements OverrideStore {
  private readonly runner: CommandRunner
  private readonly name: string

  constructor(runner: CommandRunner, keys: RedisKeys, policy: string) {
    this.runner = runner
    this.name = keys.before('overrides', policy).slice(0, -1)
  }

  load(version: number): Promise<KeptOverrides> {
    return this.run(['load', String(version)], (reply) => {
      const [now, ...fields] = arrayIn(reply)
      if (typeof now !== 'number') throw unreadable()
      return { version: now, policies: now === version ? undefined : policiesIn(fields) }
    })
  }

  set(key: string, policy: Policy, most: number): Promise<boolean> {
    return this.run(['set', JSON.stringify(key), JSON.stringify(policy), String(most)], isOne)
  }

  delete(key: string): Promise<boolean> {
    return this.run(['delete', JSON.stringify(key)], isOne)
  }

  private run<Answer>(args: readonly string[], read: (reply: unknown) => Answer): Promise<Answer> {
    return runScript(this.runner, OVERRIDES_SCRIPT, [this.name], args, read)
  }
}

/** From alternating names and values. */
function* policiesIn(fields: readonly unknown[]): Generator<readonly [string, unknown]> {
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const key = jsonIn(fields[i])
    if (typeof key === 'string') yield [key, jsonIn(fields[i + 1])]
  }
}

function jsonIn(text: unknown): unknown {
  try {
    return JSON.parse(String(text))
  } catch {
    return undefined
  }
}

function isOne(reply: unknown): boolean {
  return reply === 1
}

function arrayIn(reply: unknown): readonly unknown[] {
  if (Array.isArray(reply)) return reply
  throw unreadable()
}

function unreadable(): StoreError {
  return new StoreError('OUTAGE', 'the store gave an answer that cannot be read')
}
