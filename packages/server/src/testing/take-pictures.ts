// Takes the pictures of the live page for the documents: `npm run pictures -w sluicegate-server`, after `npm run build`.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseConfig } from '../config/read-config.js'
import { type Service, startService } from '../service.js'
import { launchBrowser } from './browser.js'

const POLICIES = (perUser: number, uploads: number): string => `policies:
  per-user: { algorithm: token-bucket, limit: ${perUser}, window: 1m }
  uploads: { algorithm: gcra, limit: ${uploads}, window: 1s, burst: ${uploads} }
`
/** Between two samples of the page: faster than the service's own, so that two minutes of figures take a quarter of one. */
const SAMPLE_MS = 250
const SAMPLES = 100

const [folder = '../../docs/images'] = process.argv.slice(2)
const scratch = mkdtempSync(join(tmpdir(), 'sluicegate-'))
const candidate = join(scratch, 'next.yaml')
writeFileSync(candidate, POLICIES(20, 8))
const live = `listen: { port: 0, admin: "127.0.0.1:0" }\nlog: { level: silent }\n${POLICIES(30, 5)}`
const service = await startService({ ...parseConfig(live), candidate }, { sampleMs: SAMPLE_MS })
const browser = await launchBrowser()
try {
  const url = service.urls.get('admin') ?? ''
  const open = async (width: number, height: number, colorScheme: 'light' | 'dark') => {
    const page = await (await browser.newContext({ viewport: { width, height }, colorScheme, locale: 'en' })).newPage()
    await page.goto(url)
    return page
  }
  const wide = await open(1440, 900, 'light')
  const dark = await open(1440, 900, 'dark')
  const narrow = await open(360, 740, 'light')
  for (let i = 0; i < SAMPLES; i++) await demand(service, i)
  await dark.keyboard.press('/')
  await dark.keyboard.type('user-1')
  await dark.keyboard.press('Enter')
  await dark.locator('.state').first().waitFor()
  await wide.screenshot({ path: join(folder, 'page.png'), fullPage: true })
  await dark.screenshot({ path: join(folder, 'page-dark.png'), fullPage: true })
  await narrow.screenshot({ path: join(folder, 'page-narrow.png') })
} finally {
  await browser.close()
  await service.stop({ drainMs: 0, finishMs: 0 })
  rmSync(scratch, { recursive: true })
}

/** One sample's requests: a few keys ask often, many rarely. */
async function demand({ engine }: Service, step: number): Promise<void> {
  const wave = 12 + Math.round(8 * Math.sin(step / 9))
  for (let i = 0; i < wave; i++) {
    engine.policy('per-user')?.take(`user-${Math.floor(40 * ((i * 0.618 + step * 0.37) % 1) ** 3)}`, 1)
    engine.policy('uploads')?.take(`user-${Math.floor(12 * ((i * 0.414 + step * 0.71) % 1) ** 2)}`, 1)
  }
  await new Promise((resolve) => setTimeout(resolve, SAMPLE_MS))
}
