/**
 * Writes the screenshot of the page, `docs/images/page.png`: `admb demo` during the partition, in Chromium. Run
 * `npm run picture` after changes of the page, and inspect the result before committing it.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { findChromium, launch, open } from '../test/support/browser.js'

const FILE = 'docs/images/page.png'
const SIZE = { width: 1120, height: 1270 }
/** Time after the start of the partition in which both sides make updates and the page shows the events. */
const WAIT_MS = 6000

const executable = findChromium()
if (executable === undefined)
  throw new Error('no Chromium found: apt-get install chromium, or set ADMB_CHROMIUM to its path')
const demo = spawn(process.execPath, ['dist/program/admb.js', 'demo', '--http', '0'], {
  stdio: ['ignore', 'pipe', 'inherit']
})
const browser = await launch(executable)
try {
  let page: Awaited<ReturnType<typeof open>>['page'] | undefined
  for await (const line of createInterface({ input: demo.stdout })) {
    const url = /^watch it at (\S+)/.exec(line)?.[1]
    if (url) page = (await open(browser, url, { viewport: SIZE, colorScheme: 'light' })).page
    if (!line.includes('partition:')) continue
    await sleep(WAIT_MS)
    await page?.screenshot({ path: FILE })
    console.log(`wrote ${FILE}`)
    break
  }
} finally {
  await browser.close()
  const ended = once(demo, 'exit')
  demo.kill('SIGTERM')
  await ended
}
