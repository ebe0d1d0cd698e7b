// Takes the pictures of the live page for the documents: `npm run pictures -w sluicegate-server`, after `npm run build`.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseConfig } from 'sluicegate-config/read-config.js'
import { type Service, startService } from 'sluicegate-server/dist/service.js'
import { launchBrowser, takePicture } from '../browser/launch-browser.js'

const POLICIES = (perUser: number, uploads: number): string => `policies:
  per-user: { algorithm: token-bucket, limit: ${perUser}, window: 1m }
  uploads: { algorithm: gcra, limit: ${uploads}, window: 1s, burst: ${uploads} }
`
/** Two minutes of figures fill the charts. */
const SAMPLES = 122

const [folder = '../../docs/images'] = process.argv.slice(2)
const scratch = mkdtempSync(join(tmpdir(), 'sluicegate-'))
const candidate = join(scratch, 'next.yaml')
writeFileSync(candidate, POLICIES(20, 8))
const live = `listen: { port: 0, admin: "127.0.0.1:0" }\nlog: { level: silent }\n${POLICIES(30, 5)}`
const service = await startService({ ...parseConfig(live), candidate })
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
  let step = 0
  const asking = setInterval(() => demand(service, step++ / 10), 100)
  await new Promise((resolve) => setTimeout(resolve, SAMPLES * 1_000))
  await dark.keyboard.press('/')
  await dark.keyboard.type('user-1')
  await dark.keyboard.press('Enter')
  await dark.locator('.state').first().waitFor()
  await takePicture(wide, join(folder, 'page.png'), { fullPage: true })
  await takePicture(dark, join(folder, 'page-dark.png'), { fullPage: true })
  await takePicture(narrow, join(folder, 'page-narrow.png'))
  clearInterval(asking)
} finally {
  await browser.close()
  await service.stop({ drainMs: 0, finishMs: 0 })
  rmSync(scratch, { recursive: true })
}

/** The requests of a tenth of a second: a few keys ask often, many rarely. */
function demand({ engine }: Service, seconds: number): void {
  const wave = 9 + Math.round(5 * Math.sin(seconds / 9) + 2 * Math.sin(seconds / 2.3))
  for (let i = 0; i < wave; i++) {
    engine.policy('per-user')?.take(`user-${Math.floor(90 * ((i * 0.618 + seconds * 3.7) % 1) ** 3)}`, 1)
    engine.policy('uploads')?.take(`user-${Math.floor(24 * ((i * 0.414 + seconds * 7.1) % 1) ** 2)}`, 1)
  }
}
