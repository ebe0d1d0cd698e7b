import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from 'sluicegate'
import { atOnce, envoyDomains } from 'sluicegate-testkit/service/running-service.js'
import { Engine } from '../engine/engine.js'
import type { Descriptor } from './limit-request.js'
import { DEFAULT_LIMIT_SETTINGS } from './limit-settings.js'
import { RateLimits } from './rate-limits.js'

// What the documentation of Envoy's ratelimit service says its examples decide, example by example, on rules of the same shape.
// Source: README.md of envoyproxy/ratelimit, "Examples", and its examples/ratelimit/config/example.yaml, July 2026.

/** The text `user=alice path=/a` as a descriptor. */
function descriptor(entries: string): Descriptor {
  const list = entries.split(' ').map((entry) => {
    const at = entry.indexOf('=')
    return { key: entry.slice(0, at), value: entry.slice(at + 1) }
  })
  return { entries: list, limit: undefined, hitsAddend: undefined, isNegativeHits: false }
}

/** How many of 1,000 requests with these descriptors pass, all in one second. */
type Passing = readonly [descriptors: string | readonly string[], passed: number]

const MANY = 1_000
const ALL = MANY

interface Example {
  readonly what: string
  readonly rules: string
  /** One after another, at the same time. */
  readonly passing: readonly Passing[]
}

const EXAMPLES: readonly Example[] = [
  {
    what: 'limits for two values of one key',
    rules: `
  - { key: pool, value: reports, rate_limit: { unit: second, requests_per_unit: 300 } }
  - { key: pool, value: default, rate_limit: { unit: second, requests_per_unit: 400 } }`,
    passing: [
      ['pool=reports', 300],
      ['pool=default', 400],
      ['pool=other', ALL],
    ],
  },
  {
    what: 'nested rules without a value have a limit for each value, and a request obeys all that match',
    rules: `
  - key: kind
    value: advert
    descriptors: [{ key: to, rate_limit: { unit: day, requests_per_unit: 5 } }]
  - { key: to, rate_limit: { unit: day, requests_per_unit: 100 } }`,
    passing: [
      ['kind=advert to=206', 5],
      ['kind=advert to=207', 5],
      ['kind=invoice to=206', ALL],
      [['kind=advert to=208', 'to=208'], 5],
      ['to=208', 95],
      ['to=209', 100],
      [['kind=advert to=209', 'to=209'], 0],
    ],
  },
  {
    what: 'a rule with the value comes before a rule with the key alone',
    rules: `
  - { key: address, rate_limit: { unit: second, requests_per_unit: 10 } }
  - { key: address, value: 50.0.0.5, rate_limit: { unit: second, requests_per_unit: 0 } }`,
    passing: [
      ['address=50.0.0.1', 10],
      ['address=50.0.0.5', 0],
    ],
  },
  {
    what: 'a descriptor matches rules of its own depth only: above',
    rules: `
  - { key: outer, value: a, rate_limit: { unit: second, requests_per_unit: 30 } }`,
    passing: [
      ['outer=a inner=b', ALL],
      ['outer=a', 30],
    ],
  },
  {
    what: 'a descriptor matches rules of its own depth only: below',
    rules: `
  - key: outer
    value: a
    descriptors: [{ key: inner, rate_limit: { unit: second, requests_per_unit: 30 } }]`,
    passing: [
      ['outer=a inner=b', 30],
      ['outer=a', ALL],
    ],
  },
  {
    what: 'unlimited rules',
    rules: `
  - { key: directory, rate_limit: { unlimited: true } }
  - { key: cloud, rate_limit: { unit: minute, requests_per_unit: 100 } }`,
    passing: [
      ['directory=x', ALL],
      ['cloud=x', 100],
    ],
  },
  {
    what: 'a rule in shadow mode denies nothing',
    rules: `
  - key: service
    descriptors:
      - { key: user, value: ann, rate_limit: { unit: second, requests_per_unit: 10 }, shadow_mode: true }
      - { key: user, value: bob, rate_limit: { unit: second, requests_per_unit: 20 } }`,
    passing: [
      ['service=login user=ann', ALL],
      ['service=login user=bob', 20],
    ],
  },
  {
    what: 'a limit replaces another where both match',
    rules: `
  - key: plan
    value: small
    descriptors: [{ key: user, value: ann, rate_limit: { name: small-plan, unit: second, requests_per_unit: 5 } }]
  - key: event
    value: sale
    descriptors: [{ key: user, value: ann, rate_limit: { replaces: [{ name: small-plan }], unit: second, requests_per_unit: 10 } }]`,
    passing: [
      [['plan=small user=ann', 'event=sale user=ann'], 10],
      ['plan=small user=ann', 5],
      ['event=sale user=ann', 0],
    ],
  },
  {
    what: 'a rule for all values with metrics of its own, beside one for a value',
    rules: `
  - { key: host, detailed_metric: true, rate_limit: { unit: minute, requests_per_unit: 10 } }
  - { key: host, value: slow, rate_limit: { unit: minute, requests_per_unit: 20 } }`,
    passing: [
      ['host=a', 10],
      ['host=b', 10],
      ['host=slow', 20],
    ],
  },
  {
    what: 'wildcards at the end, in the middle and several times',
    rules: `
  - { key: name, value: val*, rate_limit: { unit: minute, requests_per_unit: 20 } }
  - { key: path, value: /api/*/pay, rate_limit: { unit: minute, requests_per_unit: 21 } }
  - { key: route, value: /api/*/order/*/pay, rate_limit: { unit: minute, requests_per_unit: 22 } }`,
    passing: [
      ['name=val', 20],
      ['name=value1', 20],
      ['name=va', ALL],
      ['path=/api/123/pay', 21],
      ['path=/api/a-b/pay', 21],
      ['path=/api/123/other', ALL],
      ['route=/api/v1/order/7/pay', 22],
      ['route=/api/v1/order/pay', ALL],
    ],
  },
  {
    what: 'values in metrics, three levels deep, change no decision',
    rules: `
  - key: route
    value_to_metric: true
    descriptors:
      - key: method
        value: re*
        value_to_metric: true
        descriptors: [{ key: subject, rate_limit: { unit: minute, requests_per_unit: 60 } }]`,
    passing: [
      ['route=api method=read subject=1', 60],
      ['route=api method=report subject=1', 60],
      ['route=web method=read subject=1', 60],
      ['route=web method=write subject=1', ALL],
    ],
  },
  {
    what: 'values that match a wildcard share a limit only where it says so',
    rules: `
  - { key: files, value: files/*, share_threshold: true, rate_limit: { unit: hour, requests_per_unit: 10 } }
  - { key: own, value: own/*, share_threshold: false, rate_limit: { unit: hour, requests_per_unit: 10 } }
  - key: route
    value: api/*
    share_threshold: true
    value_to_metric: true
    descriptors: [{ key: method, rate_limit: { unit: minute, requests_per_unit: 60 } }]`,
    passing: [
      ['files=files/a', 10],
      ['files=files/b', 0],
      ['own=own/a', 10],
      ['own=own/b', 10],
      ['route=api/v1 method=GET', 60],
      ['route=api/v2 method=GET', 0],
      ['route=api/v2 method=PUT', 60],
    ],
  },
  {
    what: 'limits replaced across levels, banned values, shadow and quota mode in one file',
    rules: `
  - { key: category, value: account, rate_limit: { replaces: [{ name: ann-limit }, { name: mimic }], unit: minute, requests_per_unit: 4 } }
  - key: from
    value: proxy
    descriptors:
      - { key: to, value: ann, rate_limit: { replaces: [{ name: ann-limit }], unit: minute, requests_per_unit: 2 } }
      - { key: to, value: mock, rate_limit: { unit: minute, requests_per_unit: 1 } }
      - { key: to, value: pardon, rate_limit: { replaces: [{ name: banned }], unit: minute, requests_per_unit: 2 } }
      - { key: to, value: mimic, rate_limit: { name: mimic, unit: minute, requests_per_unit: 2 } }
  - key: foo
    rate_limit: { unit: minute, requests_per_unit: 2 }
    descriptors:
      - { key: bar, rate_limit: { unit: minute, requests_per_unit: 3 } }
      - { key: bar, value: ann, rate_limit: { name: ann-limit, unit: minute, requests_per_unit: 1 } }
      - { key: bar, value: banned, rate_limit: { name: banned, unit: minute, requests_per_unit: 0 } }
      - { key: baz, value: shady, rate_limit: { unit: minute, requests_per_unit: 3 }, shadow_mode: true }
      - { key: bay, rate_limit: { unlimited: true } }
  - { key: service, value: one, quota_mode: true, rate_limit: { unit: minute, requests_per_unit: 1 } }
  - { key: service, value: two, quota_mode: true, rate_limit: { unit: minute, requests_per_unit: 2 } }`,
    passing: [
      ['from=proxy to=mock', 1],
      ['foo=x', 2],
      ['foo=x bar=y', 3],
      ['foo=x bar=banned', 0],
      [['foo=x bar=banned', 'from=proxy to=pardon'], 2],
      [['foo=x bar=ann', 'from=proxy to=ann'], 2],
      [['foo=x bar=ann', 'from=proxy to=mimic', 'category=account'], 4],
      ['foo=x bar=ann', 1],
      ['from=proxy to=mimic', 2],
      ['foo=x baz=shady', ALL],
      ['foo=x bay=y', ALL],
      // Over when all limits in quota mode are.
      [['service=one', 'service=two'], 2],
      ['service=one', 0],
    ],
  },
]

for (const { what, rules, passing } of EXAMPLES) {
  test(`as documented: ${what}`, () => {
    const domains = envoyDomains(`domain: edge\ndescriptors:${rules}\n`)
    const clock = manualClock(12_000)
    const engine = new Engine(
      domains.flatMap(({ policies }) => policies),
      { clock },
    )
    const limits = new RateLimits(engine, domains, DEFAULT_LIMIT_SETTINGS, () => clock.nowMs())
    const passed = ([descriptors]: Passing): number => {
      const request = { domain: 'edge', descriptors: [descriptors].flat().map(descriptor), hitsAddend: 0 }
      return Array.from({ length: MANY }, () => atOnce(limits.decide(request))).filter(({ over }) => !over).length
    }
    const found = passing.map((each): Passing => [each[0], passed(each)])
    assert.deepEqual(found, passing)
  })
}
