import { launchBrowser, takePicture } from 'sluicegate-testkit/browser/launch-browser.js'
import { BUILT, ROOT } from './api-reference.js'
import { EXAMPLES } from './playground/examples.js'
import { queryOf } from './playground/playground-state.js'
import { serveFolder } from './static-server.js'

const DESK = { viewport: { width: 1440, height: 900 } }
const FORMS = { '': DESK, '-narrow': { viewport: { width: 360, height: 740 } }, '-dark': { ...DESK, colorScheme: 'dark' as const } }

/** Takes the pictures of the built site for the documents. */
export async function takePictures(): Promise<void> {
  const { url, close } = await serveFolder(BUILT)
  const browser = await launchBrowser()
  const [burst] = EXAMPLES
  const pages = { site: '', playground: burst === undefined ? 'playground' : `playground?${queryOf(burst.state)}` }
  try {
    for (const [name, path] of Object.entries(pages)) {
      for (const [suffix, form] of Object.entries(FORMS)) {
        const page = await browser.newPage({ ...form, locale: 'en' })
        await page.goto(`${url}${path}`, { waitUntil: 'networkidle' })
        await takePicture(page, `${ROOT}docs/images/${name}${suffix}.png`, { fullPage: name === 'playground' })
        await page.close()
      }
    }
  } finally {
    await browser.close()
    await close()
  }
}
