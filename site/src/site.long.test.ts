import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { BUILT, pathThere } from './api-reference.js'
import { addressOf, builtPages, onPage, withBuiltSite } from './testing/built-site.js'
import { playgroundTests } from './testing/playground-tests.js'

const MOST_BYTES = 200_000
const PHONE = { viewport: { width: 360, height: 740 } }
const DESK = { viewport: { width: 1440, height: 900 } }
/** One of each kind: a page by hand, a guide, the longest tables, the reference, a program, the records. */
const KINDS = ['/', '/quick-start', '/benchmarks', '/api/sluicegate/redis', '/examples/take-mjs', '/adr/', '/playground']

withBuiltSite()

/** Links and anchors of a page as built. */
function linksAndIds(path: string): { readonly links: string[]; readonly ids: ReadonlySet<string> } {
  const file = path.endsWith('/') ? `${path}index.html` : `${path}.html`
  const html = readFileSync(`${BUILT}${file}`, 'utf8').replace(/<script[\s\S]*?<\/script>/g, '')
  const links = [...html.matchAll(/<a\b[^>]*?\shref="([^"]+)"/g)].map(
    ([, href = '']) => new URL(href.replaceAll('&amp;', '&'), `http://site${path}`),
  )
  const inner = links.filter(({ host }) => host === 'site').map(({ pathname, hash }) => `${pathname}${hash}`)
  return { links: inner, ids: new Set([...html.matchAll(/\s(?:id|name)="([^"]+)"/g)].map(([, id = '']) => id)) }
}

test('every link within the site leads to a page, and every anchor to a heading', () => {
  const pages = new Map(builtPages().map((path) => [path, linksAndIds(path)]))
  assert.ok(pages.size > 100, `${pages.size} pages`)
  const dead = [...pages].flatMap(([path, { links }]) =>
    links
      .filter((link) => {
        const [to = '', anchor] = link.split('#')
        const target = pages.get(to)
        return target === undefined || (anchor !== undefined && anchor !== '' && !target.ids.has(decodeURIComponent(anchor)))
      })
      .map((link) => `${path} -> ${link}`),
  )
  assert.deepEqual([...new Set(dead)], [])
})

test('every document of the repository has its page', () => {
  const pages = new Set(builtPages())
  for (const path of [
    '/guide',
    '/policies/gcra',
    '/adr/0004-table',
    '/architecture',
    '/changelog',
    '/examples/',
    '/api/sluicegate/redis',
  ]) {
    assert.ok(pages.has(path), path)
  }
})

/** What a browser has loaded so far, as it was transferred. */
async function assertIsLight(page: Page): Promise<void> {
  const bytes = await page.evaluate(() =>
    [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]
      .map((entry) => (entry as PerformanceResourceTiming).encodedBodySize)
      .reduce((sum, each) => sum + each, 0),
  )
  assert.ok(bytes > 20_000 && bytes < MOST_BYTES, `${page.url()}: ${bytes} bytes`)
}

for (const path of KINDS) {
  test(`${path} has no complaint in the console and no serious finding of axe-core, on a phone and on a desk, and is light`, async () => {
    for (const options of [PHONE, DESK]) {
      await onPage(path, options, async ({ page, complaints }) => {
        assert.deepEqual(await seriousFindings(page), [], `${options.viewport.width} px`)
        const width = await page.evaluate(() => document.documentElement.scrollWidth)
        assert.ok(width <= options.viewport.width, `${width} px wide`)
        assert.deepEqual(complaints, [])
        if (path !== '/playground') await assertIsLight(page)
      })
    }
  })
}

test('the dark form has no serious finding either', async () => {
  for (const path of ['/', '/guide', '/playground']) {
    await onPage(path, { ...DESK, colorScheme: 'dark' }, async ({ page }) => {
      assert.equal(await page.evaluate(() => document.documentElement.classList.contains('dark')), true)
      assert.deepEqual(await seriousFindings(page), [], path)
    })
  }
})

test('the longest guides load below 200 kB, too', async () => {
  for (const path of ['/service', '/guide', '/redis', '/proof', '/scale', '/api/sluicegate'])
    await onPage(path, DESK, ({ page }) => assertIsLight(page))
})

test('the search works without another host, and finds "login"', async () => {
  await onPage('/', DESK, async ({ page, complaints }) => {
    const hosts = new Set<string>()
    page.on('request', (request) => hosts.add(new URL(request.url()).origin))
    await page.keyboard.press('Control+k')
    await page.locator('.VPLocalSearchBox input').fill('login')
    const first = page.locator('.VPLocalSearchBox .result').first()
    await first.waitFor()
    assert.match((await page.locator('.VPLocalSearchBox .results').textContent()) ?? '', /login/i)
    await first.click()
    await page.waitForURL((url) => url.pathname !== '/')
    assert.deepEqual([...hosts], [new URL(addressOf('/')).origin])
    assert.deepEqual(complaints, [])
  })
})

test('the first page has a line, a program to copy, figures with their plot, and leads on', async () => {
  await onPage('/', DESK, async ({ page }) => {
    assert.match((await page.locator('.sg-line').textContent()) ?? '', /rate limiter for Node\.js/)
    assert.match((await page.locator('.sg-program pre').textContent()) ?? '', /app\.use\(rateLimit\(tokenBucket/)
    assert.equal(await page.locator('.sg-program button.copy').count(), 1)
    assert.ok((await page.locator('.sg-figures dd').count()) >= 5)
    assert.ok(
      await page.locator('.sg-figures img').evaluate(async (image: HTMLImageElement) => image.decode().then(() => image.naturalWidth > 0)),
    )
    await page.locator('.sg-links a', { hasText: 'playground' }).click()
    await page.waitForURL('**/playground')
  })
})

test('the version is shown, with what changed', async () => {
  await onPage('/', DESK, async ({ page }) => {
    const { version } = JSON.parse(readFileSync('package.json', 'utf8'))
    await page.locator('.VPNavBarMenuGroup', { hasText: version }).hover()
    assert.equal(await page.locator('.VPNavBarMenuGroup a', { hasText: 'Changes' }).getAttribute('href'), '/changelog')
  })
})

playgroundTests()

interface Finding {
  readonly id: string
  readonly impact: string | null
  readonly nodes: readonly { readonly target: readonly string[]; readonly failureSummary?: string }[]
}

/** What axe-core finds on a page that is serious or worse, each with its first place. */
async function seriousFindings(page: Page): Promise<string[]> {
  await page.addScriptTag({ content: readFileSync(pathThere('axe-core/axe.min.js'), 'utf8') })
  const violations = (await page.evaluate(
    'axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) => violations)',
  )) as Finding[]
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes.length} times, first ${nodes[0]?.target.join(' ')}: ${nodes[0]?.failureSummary ?? ''}`)
}
