/** The simulator in a real browser: from a peer's server, and from a static host. Writes screenshots to `artifacts/`. Skipped without Chromium. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Browser, Page } from 'playwright-core'
import { loadScenario, parseScenario, simulate } from '../../sim/index.js'
import { type HttpServer, servePage } from '../../src/server/index.js'
import { NetworkView } from '../../src/view/index.js'
import { launchIfFound, open, seriousProblems } from '../support/browser.js'
import { until } from '../support/peer-processes.js'
import { host } from '../support/static-host.js'

const ARTIFACTS = 'artifacts'
const DESKTOP = { width: 1280, height: 900 }
const PHONE = { width: 390, height: 844 }
const WAIT_MS = 60_000

describe('the simulator in a tab', function () {
  this.timeout(240_000)
  let browser: Browser
  let server: HttpServer
  let site: Server

  before(async function () {
    browser = (await launchIfFound()) ?? this.skip()
    mkdirSync(ARTIFACTS, { recursive: true })
    server = await servePage({ view: new NetworkView(), port: 0 })
    const { status, stderr } = spawnSync(process.execPath, ['dist/scripts/build-site.js'], { encoding: 'utf8' })
    assert.equal(status, 0, stderr)
    site = await host('dist/site', '/admb/')
  })
  after(async () => {
    await browser?.close()
    await server?.close()
    site?.close()
  })

  const shown = (what: string, condition: () => Promise<boolean>) => until(what, condition, WAIT_MS)
  const shot = (page: Page, name: string) =>
    page.screenshot({ path: `${ARTIFACTS}/simulator-${name}.png`, fullPage: true })
  const hashOf = async (page: Page) => {
    const hash = page.locator('#trace-hash')
    await shown('the run ends', async () => (await hash.count()) === 1)
    return hash.textContent()
  }
  const nodeHash = (name: string, changes: object) =>
    simulate(parseScenario({ ...loadScenario(name).values, inputs: 20_000, ...changes }, name)).traceHash
  const addresses = () => [`${server.url}/simulator`, `http://127.0.0.1:${(site.address() as AddressInfo).port}/admb/`]

  it('makes the same runs as Node.js, from a peer and from a static host', async () => {
    // Delays, rates and faults with logarithms and exponentials.
    const more = ['far-apart', 'uneven', 'churn']
    for (const [index, address] of addresses().entries()) {
      const { page, errors } = await open(browser, address, { viewport: DESKTOP })
      assert.equal(await hashOf(page), nodeHash('crashes', {}))
      for (const name of index === 0 ? more : []) {
        await page.locator('#scenario').selectOption(name)
        await shown('the next run', async () => (await page.locator('#hash').textContent())?.includes(name) ?? false)
        assert.equal(await hashOf(page), nodeHash(name, {}), name)
      }
      assert.deepEqual(errors, [])
      await page.close()
    }
  })

  it('changes the run with the sliders, and shows any time of it, with the keyboard', async () => {
    const { page } = await open(browser, addresses()[0], { viewport: DESKTOP, reducedMotion: 'reduce' })
    await hashOf(page)
    await page.locator('#setting-batch').press('ArrowLeft')
    await shown('the command of the run', async () =>
      ((await page.locator('#hash').textContent()) ?? '').includes('batch=256')
    )
    assert.equal(await hashOf(page), nodeHash('crashes', { batch: 256 }))
    assert.equal(await page.locator('#setting-batch').getAttribute('aria-valuetext'), '256')
    const position = page.locator('#position')
    await shown('the last frame', async () =>
      ((await position.getAttribute('aria-valuetext')) ?? '').includes('20,000 inputs')
    )
    assert.equal(await page.locator('#tree .node').count(), 64)
    await position.press('Home')
    await shown('the first frame', async () =>
      /, \d{1,3} inputs/.test((await position.getAttribute('aria-valuetext')) ?? '')
    )
    assert.match((await page.locator('#scene').textContent()) ?? '', /nodes run; there is no update yet/)
  })

  it('has no serious accessibility problems in light mode, in dark mode and on a phone', async () => {
    const variants = {
      light: { viewport: DESKTOP, colorScheme: 'light' },
      dark: { viewport: DESKTOP, colorScheme: 'dark' },
      phone: { viewport: PHONE, colorScheme: 'light', deviceScaleFactor: 2 }
    } as const
    for (const [name, options] of Object.entries(variants)) {
      const { page, errors } = await open(browser, addresses()[0], { ...options, reducedMotion: 'reduce' })
      await hashOf(page)
      await shown('all nodes', async () => (await page.locator('#tree .node').count()) === 64)
      assert.deepEqual(await seriousProblems(page), [], name)
      const width = (await page.evaluate('document.documentElement.scrollWidth')) as number
      assert.ok(width <= options.viewport.width, `${name}: the page is ${width} px wide`)
      await shot(page, name)
      assert.deepEqual(errors, [])
    }
  })
})
