import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { arrivalsOf } from '../playground/arrivals.js'
import { ALGORITHMS, decide, decisionsCsv } from '../playground/decide.js'
import { stateOf } from '../playground/playground-state.js'
import { onPage } from './built-site.js'

const DESK = { viewport: { width: 1440, height: 900 } }

async function decisionsOn(page: Page): Promise<string> {
  const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Decisions as CSV' }).click()])
  return readFileSync(await download.path(), 'utf8')
}

/** Admitted, denied, tokens left, Retry-After of a card. */
async function readings(page: Page, card = 0): Promise<string[]> {
  return page.locator('.pg-card').nth(card).locator('dd').allInnerTexts()
}

/** Of the playground, on the site that is served. */
export function playgroundTests(): void {
  test('10,000 decisions in Chromium are those of Node', async () => {
    let compared = 0
    for (const algorithm of ALGORITHMS) {
      const query = `policy=${algorithm},70,3s,40&demand=poisson&rate=50&seed=${compared + 5}&seconds=50`
      const { first, demand } = stateOf(query)
      const arrivals = arrivalsOf(demand)
      const here = decisionsCsv(arrivals, decide(first, arrivals, demand.seconds).decisions)
      const there = await onPage(`/playground?${query}`, DESK, async ({ page, complaints }) => {
        await page.locator('.pg[data-ready=true]').waitFor()
        assert.deepEqual(complaints, [])
        return decisionsOn(page)
      })
      assert.equal(there, here, algorithm)
      assert.ok(here.includes('true') && here.includes('false'))
      compared += arrivals.length
    }
    assert.ok(compared >= 10_000, `${compared}`)
  })

  test('open work holds what it may cost, spends as it goes, and closes', async () => {
    await onPage('/playground', DESK, async ({ page, complaints }) => {
      await page.locator('.pg[data-ready=true]').waitFor()
      await page.getByRole('button', { name: 'Open work' }).click()
      const [spent, , open] = ['Spent', 'Held', 'Open'].map((_, i) => page.locator('.pg-work dd').nth(i))
      await open?.filter({ hasText: /^1$/ }).waitFor()
      await spent?.filter({ hasText: /^[1-9]/ }).waitFor()
      await open?.filter({ hasText: /^0$/ }).waitFor()
      assert.deepEqual(complaints, [])
    })
  })

  test('a change of a number decides again, and the address holds it', async () => {
    await onPage('/playground', DESK, async ({ page, complaints }) => {
      const before = await readings(page)
      await page.getByLabel('Burst', { exact: true }).fill('1')
      await page.getByLabel('Burst', { exact: true }).press('Enter')
      await page.waitForURL(/policy=token-bucket,10,10s,1&/)
      assert.notDeepEqual(await readings(page), before)
      await page.getByLabel('Limit', { exact: true }).fill('0.5')
      await page.getByLabel('Limit', { exact: true }).press('Enter')
      await page.getByRole('button', { name: 'Compare' }).click()
      await page.waitForURL(/beside=/)
      assert.equal(await page.locator('.pg-card').count(), 2)
      const shared = page.url()
      const shown = [await readings(page), await readings(page, 1)]
      await page.goto(shared)
      await page.locator('.pg[data-ready=true] .pg-card').nth(1).waitFor()
      assert.deepEqual([await readings(page), await readings(page, 1)], shown)
      assert.deepEqual(complaints, [])
    })
  })

  test('clicks are requests: by keyboard and by touch, and each answer is said', async () => {
    const query = '/playground?policy=token-bucket,2,60s,2&demand=clicks&seconds=30'
    await onPage(query, { viewport: { width: 360, height: 740 }, hasTouch: true }, async ({ page }) => {
      const button = page.getByRole('button', { name: 'Send a request' })
      const said = page.locator('.pg-send:has(.pg-primary) [role=status]')
      await button.focus()
      await page.keyboard.press('Space')
      await page.getByText('Admitted, 1 left').waitFor()
      await button.tap()
      await page.getByText('Admitted, 0 left').waitFor()
      await button.tap()
      await page.getByText(/Denied, try again in/).waitFor()
      assert.equal(await said.getAttribute('aria-live'), 'polite')
      assert.deepEqual((await readings(page)).slice(0, 3), ['2', '1', '0'])
      assert.match(page.url(), /clicks=\d+-\d+-\d+/)
    })
  })

  test('a pasted access log is decided by client', async () => {
    await onPage('/playground?policy=fixed-window,2,1m&demand=log', DESK, async ({ page }) => {
      const line = (client: string, second: number): string => `${client} - - [10/Oct/2025:13:55:0${second} +0000] "GET / HTTP/1.1" 200 5`
      await page.locator('textarea').fill([line('a', 0), line('a', 1), line('a', 2), line('b', 3)].join('\n'))
      await page.getByText('4 requests of 2 clients').waitFor()
      assert.deepEqual((await readings(page)).slice(0, 2), ['3', '1'])
    })
  })

  test('a pasted log of 50 MB shows its beginning, and what was left out is said', async () => {
    await onPage('/playground?policy=fixed-window,2,1m&demand=log', DESK, async ({ page }) => {
      const shown = await page.locator('textarea').evaluate((field) => {
        const line = '192.0.2.1 - - [10/Oct/2025:13:55:01 +0000] "GET / HTTP/1.1" 200 5\n'
        const clipboardData = new DataTransfer()
        clipboardData.setData('text/plain', line.repeat(Math.ceil(50e6 / line.length)))
        return field.dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }))
      })
      assert.equal(shown, false, 'the browser does not lay out 50 MB')
      await page.getByText(/20,000 requests of 1 clients.*the rest is left out/).waitFor()
      assert.equal((await page.locator('textarea').inputValue()).length, 100_000)
    })
  })

  test('the code is in three languages, by arrow keys too', async () => {
    await onPage('/playground', DESK, async ({ page }) => {
      await page.getByRole('tab', { name: 'TypeScript' }).focus()
      assert.match((await page.getByRole('tabpanel').textContent()) ?? '', /tokenBucket\(\{ limit: 10, window: '10s', burst: 10 \}\)/)
      await page.keyboard.press('ArrowRight')
      assert.match((await page.getByRole('tabpanel').textContent()) ?? '', /algorithm: token-bucket, limit: 10/)
      await page.keyboard.press('ArrowRight')
      assert.match((await page.getByRole('tabpanel').textContent()) ?? '', /requests_per_unit: 10/)
    })
  })

  test('time runs in few steps where motion is to be reduced', async () => {
    for (const [reducedMotion, isReduced] of [
      ['reduce', true],
      ['no-preference', false],
    ] as const) {
      await onPage('/playground', { ...DESK, reducedMotion }, async ({ page }) => {
        const moved = page.evaluate(
          () =>
            new Promise<number>((resolve) => {
              const slider = document.querySelector('.pg-clock') as HTMLElement
              let steps = 0
              new MutationObserver(() => {
                steps++
              }).observe(slider, { characterData: true, subtree: true, childList: true })
              setTimeout(() => resolve(steps), 2500)
            }),
        )
        await page.getByRole('button', { name: 'Play' }).click()
        const steps = await moved
        assert.equal(steps > 0 && steps <= 8, isReduced, `${steps} steps`)
        await page.getByRole('button', { name: 'Pause' }).click()
      })
    }
  })

  test('a browser that shares memory with isolated pages alone gets isolated pages', async () => {
    await onPage('/quick-start', DESK, async ({ page }) => {
      await page.addInitScript(() => {
        const { Memory } = WebAssembly
        WebAssembly.Memory = class extends Memory {
          constructor(descriptor: WebAssembly.MemoryDescriptor) {
            if (descriptor.shared === true && !crossOriginIsolated) throw new TypeError('refused')
            super(descriptor)
          }
        }
      })
      const address = new URL('/playground?policy=token-bucket,10,10s,3&demand=steady&rate=1&seconds=60', page.url()).href
      await page.goto(address)
      await page.waitForFunction(() => crossOriginIsolated)
      await page.locator('.pg[data-ready=true]').waitFor()
      await page.waitForFunction(() => document.querySelector('.pg-readings dd')?.textContent === '60')
    })
  })
}
