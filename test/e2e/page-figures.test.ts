/** What the page of an observer shows of given statuses, in a real browser. Skipped without Chromium. */
import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import type { Browser, Page } from 'playwright-core'
import { type HttpServer, servePage } from '../../src/server/index.js'
import { type NetworkStatus, NetworkView } from '../../src/view/index.js'
import { launchIfFound, open, seriousProblems } from '../support/browser.js'
import { until } from '../support/peer-processes.js'
import { PEERS, status } from '../support/statuses.js'

const ARTIFACTS = 'artifacts'
const WIDE = { width: 1400, height: 900 }
const PHONE = { width: 390, height: 844 }
const PROBLEM = 'the learner has not responded for 20 s: its model may be too slow for the rate of inputs'

describe('the figures of the page', function () {
  this.timeout(120_000)
  let browser: Browser
  let server: HttpServer | undefined

  before(async function () {
    browser = (await launchIfFound()) ?? this.skip()
    mkdirSync(ARTIFACTS, { recursive: true })
  })
  afterEach(() => server?.close())
  after(() => browser?.close())

  /** Serves the page of a network whose peers have learned for some seconds. @param figures of a peer after so many inputs */
  async function serve(peers: number, figures: (inputs: number) => Partial<NetworkStatus>): Promise<string> {
    const view = new NetworkView()
    const start = Date.now() - 20_000
    for (let second = 1; second <= 20; second++) {
      for (const [place, id] of PEERS.slice(0, peers).entries()) {
        // The second peer is away for a while.
        if (place === 1 && second > 6 && second < 14) continue
        const inputs = 40 * second + place
        const problem = place === 2 ? { problem: PROBLEM } : {}
        const given = { name: `shop ${place + 1}`, uptime: second, inputs, ...figures(inputs), ...problem }
        view.receive(id, status(given), start + 1000 * second)
      }
      view.tick(start + 1000 * second)
    }
    server = await servePage({ view, port: 0 })
    return server.url
  }

  const regression = (inputs: number) => {
    const rmse = 50_000 + 1e6 / inputs
    const loss = Number(((rmse * rmse) / 2).toPrecision(7))
    return { loss, accuracy: undefined, recent: { inputs, loss, rmse: Number(rmse.toPrecision(7)), r2: 0.75 } }
  }
  const shown = (what: string, condition: () => Promise<boolean>) => until(what, condition, 30_000)
  const rows = (page: Page) => page.locator('#peers tbody tr')
  const keyOf = (page: Page) => page.locator('#plot-inputs .key li').allTextContents()

  it('show the error of a regression in the unit of its target', async () => {
    const { page, errors } = await open(browser, await serve(3, regression), { viewport: WIDE })
    await shown('all peers', async () => (await rows(page).count()) === 3)
    const totals = (await page.locator('#totals').textContent()) ?? ''
    assert.match(totals, /RMSE51,\d{3}Recent RMSE51,\d{3}Recent R²0\.750/)
    assert.match((await page.locator('#inputs-title').textContent()) ?? '', /^RMSE against inputs$/)
    const text = (await page.locator('body').innerText()).replace(/Lost|lost/g, '')
    assert.doesNotMatch(text, /\bnats\b|\d{9}|Accuracy/)
    await page.screenshot({ path: `${ARTIFACTS}/regression.png`, fullPage: true })
    assert.deepEqual(errors, [])
    await page.context().close()
  })

  it('show the problem of a peer without scrolling, on a wide screen and on a phone', async () => {
    const url = await serve(4, inputs => ({ loss: 1 / inputs, batch: 64, skipped: 3, discarded: 12 }))
    for (const [name, viewport] of Object.entries({ wide: WIDE, tablet: { width: 1030, height: 800 }, phone: PHONE })) {
      const { page } = await open(browser, url, { viewport })
      await shown('all peers', async () => (await rows(page).count()) === 4)
      const cell = page.locator('#peers td.problem')
      assert.equal(await cell.textContent(), PROBLEM)
      const box = await cell.boundingBox()
      assert.ok(box && box.x >= 0 && box.x + box.width <= viewport.width, `${name}: ${JSON.stringify(box)}`)
      const overflow =
        '[...document.querySelectorAll("#peers td.problem")].some(cell => cell.scrollWidth > cell.clientWidth + 1)'
      assert.equal(await page.evaluate(overflow), false, name)
      const region =
        'document.querySelector("#peers").scrollWidth > document.querySelector("#peers").parentElement.clientWidth'
      assert.equal(await page.evaluate(region), false, name)
      assert.deepEqual(await seriousProblems(page), [], name)
      await page.screenshot({ path: `${ARTIFACTS}/problem-${name}.png`, fullPage: true })
      await page.context().close()
    }
  })

  it('select a peer by a click on its row, and name the selected line', async () => {
    const { page } = await open(browser, await serve(3, () => ({ loss: 0.5 })), { viewport: WIDE })
    await shown('all peers', async () => (await rows(page).count()) === 3)
    assert.deepEqual(await keyOf(page), ['shop 1', 'shop 2', 'shop 3', 'shop 1, over its last 1,000 inputs'])
    await rows(page).nth(1).locator('td').nth(3).click()
    await shown('the key', async () => (await keyOf(page)).includes('shop 2, selected'))
    assert.equal(await rows(page).nth(1).getAttribute('class'), 'chosen')
    await page.locator('#plot-time .key button', { hasText: 'shop 3' }).click()
    await shown('the key', async () => (await keyOf(page)).includes('shop 3, selected'))
    await rows(page).nth(2).getByRole('button').click()
    await shown('no selection', async () => !(await keyOf(page)).join().includes('selected'))
    await page.context().close()
  })
})
