import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { openPage } from 'sluicegate-testkit/browser/browser.js'
import { htmlReport } from './text-report.js'

test('a report is drawn from one file, plots with their names and tables, without a complaint, in either theme', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'report-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'report.html')
  const series = [{ label: 'admitted', ys: [1, 5, null] }] as const
  const marks = [{ fromX: 1, toX: 2, label: 'a fault' }]
  const plot = { x: 'number', xLabel: 'seconds', yLabel: 'requests', xs: [0, 1, 2], series, marks } as const
  const table = { columns: ['key', 'denied'], rows: [['<b>', 7]] as const }
  writeFileSync(
    file,
    htmlReport({
      title: 'Load',
      subtitle: 'one run',
      sections: [
        { heading: 'Rate', plot },
        { heading: 'Keys', table },
      ],
    }),
  )
  const { page, complaints } = await openPage(t, pathToFileURL(file).href, { colorScheme: 'light' })
  const drawn = page.locator('[role="img"]')
  assert.equal(await drawn.getAttribute('aria-label'), 'Rate: requests over seconds')
  await page.emulateMedia({ colorScheme: 'dark' })
  await page.locator('canvas').waitFor()
  assert.equal(await drawn.count(), 1)
  assert.equal(await page.locator('.scroll td').first().textContent(), '<b>')
  assert.deepEqual(complaints, [])
})
