/** The page of three real peers in a real browser, during a partition and its healing. Writes screenshots to `artifacts/`. Skipped without Chromium. */
import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { generateToken, type HttpServer, servePage } from '../../src/server/index.js'
import { type NetworkStatus, NetworkView } from '../../src/view/index.js'
import { launchIfFound, open, seriousProblems } from '../support/browser.js'
import { makeCertificate } from '../support/certificate.js'
import { type PeerProcess, PeerProcesses, until } from '../support/peer-processes.js'

const ARTIFACTS = 'artifacts'
const DESKTOP = { width: 1280, height: 900 }
const PHONE = { width: 390, height: 844 }
const WAIT_MS = 60_000

/** Receives the statuses of all peers, independently of partitions, and serves the page of its view. */
class Observer {
  readonly #view = new NetworkView()
  readonly #ticking = setInterval(() => this.#view.tick(Date.now()), 500)
  #server: HttpServer | undefined

  watch(peer: PeerProcess): void {
    peer.child.on('message', (message: { status?: NetworkStatus }) => {
      if (message.status) this.#view.receive(peer.latest.id, message.status, Date.now())
    })
  }

  async serve(): Promise<string> {
    this.#server = await servePage({ view: this.#view, port: 0 })
    return this.#server.url
  }

  async stop(): Promise<void> {
    clearInterval(this.#ticking)
    await this.#server?.close()
  }
}

describe('the page', function () {
  this.timeout(240_000)
  const processes = new PeerProcesses()
  const observer = new Observer()
  let browser: Browser
  let peers: PeerProcess[]

  before(async function () {
    browser = (await launchIfFound()) ?? this.skip()
    mkdirSync(ARTIFACTS, { recursive: true })
    const common = ['--data', 'digits', '--batch', '32', '--period', '20', '--rate', '150', '--passes', '100']
    const start = (index: number, ...more: string[]) =>
      processes.start(...common, '--name', `peer ${index}`, '--shard', `${index}/3`, ...more).ready()
    const first = await start(1)
    const [address] = first.latest.addresses
    peers = [first, await start(2, '--peer', address), await start(3, '--peer', address)]
    for (const peer of peers) observer.watch(peer)
  })
  after(async () => {
    await browser?.close()
    await observer.stop()
    await processes.stop()
  })

  const node = (page: Page, name: string) => page.locator(`#tree .disc[aria-label^="${name}"]`)
  const headline = (page: Page) => page.locator('h1').textContent()
  const letters = (page: Page) => page.locator('#tree .node .letter').allTextContents()
  const fills = async (page: Page) => {
    const all = '[...document.querySelectorAll("#tree .node .disc")].map(disc => getComputedStyle(disc).fill)'
    return new Set((await page.evaluate(all)) as string[])
  }
  const eventsOf = (page: Page, kind: string) => page.locator(`#events li.${kind}`).allTextContents()
  const shot = (page: Page, name: string) => page.screenshot({ path: `${ARTIFACTS}/${name}.png`, fullPage: true })
  const shown = (what: string, condition: () => Promise<boolean>) => until(what, condition, WAIT_MS)

  it('shows a partition and its healing with colours, edges and sentences', async () => {
    const own = await open(browser, peers[0].latest.http as string, { viewport: DESKTOP })
    const all = await open(browser, await observer.serve(), { viewport: DESKTOP })
    for (const { page } of [own, all]) {
      await shown('three peers in one tree', async () => (await page.locator('#tree .edge').count()) === 2)
      await shown('one colour', async () => (await fills(page)).size === 1)
      await shown('the headline', async () => (await headline(page)) === '3 peers follow one predictor')
    }
    await shown('the page’s peer is marked', async () => (await own.page.locator('.node.own').count()) === 1)
    const learned = own.page.locator('#learned')
    await shown('what is learned', async () =>
      /learns to predict the label \(10 classes\)\. Data: digits/.test((await learned.textContent()) ?? '')
    )
    assert.equal(await own.page.locator('#links a').count(), 5)
    // An observer has no metrics and no schema.
    assert.deepEqual(await all.page.locator('#links a:visible').allTextContents(), ['Statuses as JSON', 'Simulator'])
    assert.equal(await own.page.locator('#reference-note').isHidden(), true)
    await shot(own.page, 'whole')

    const [a, b, c] = peers.map(peer => peer.latest.id)
    peers[0].block(c)
    peers[1].block(c)
    peers[2].block(a, b)
    await shown('the third peer is disconnected', async () => (await all.page.locator('#tree .edge').count()) === 1)
    await shown('two colours and letters', async () => {
      return (await fills(all.page)).size === 2 && new Set(await letters(all.page)).size === 2
    })
    await shown('the headline', async () => (await headline(all.page)) === '3 peers follow 2 predictors')
    await shown('the event', async () =>
      (await eventsOf(all.page, 'partitioned')).join().includes('peer 3 is disconnected')
    )
    await shown('the peer is silent', async () => (await own.page.locator('.node.silent').count()) === 1)
    await shown('the event', async () =>
      (await eventsOf(own.page, 'lost')).join().includes('peer 3 stopped responding')
    )
    await shot(all.page, 'partition')
    await shot(own.page, 'partition-from-one-side')

    for (const peer of peers) peer.block()
    for (const { page } of [own, all]) {
      await shown('three peers in one tree', async () => (await page.locator('#tree .edge').count()) === 2)
      await shown('one colour', async () => (await fills(page)).size === 1)
      await shown('the event', async () => (await eventsOf(page, 'healed')).join().includes('peer 3 is back'))
    }
    await shot(all.page, 'healed')
    assert.deepEqual([...own.errors, ...all.errors], [])
  })

  it('has no serious accessibility problems in light mode, in dark mode and on a phone', async () => {
    const variants = {
      light: { viewport: DESKTOP, colorScheme: 'light' },
      dark: { viewport: DESKTOP, colorScheme: 'dark' },
      phone: { viewport: PHONE, colorScheme: 'light', deviceScaleFactor: 2 }
    } as const
    for (const [name, options] of Object.entries(variants)) {
      const { page, errors } = await open(browser, peers[0].latest.http as string, options)
      await shown('all peers', async () => (await page.locator('#peers tbody tr').count()) === 3)
      assert.deepEqual(await seriousProblems(page), [], name)
      const width = (await page.evaluate('document.documentElement.scrollWidth')) as number
      assert.ok(width <= options.viewport.width, `${name}: the page is ${width} px wide`)
      await shot(page, name)
      assert.deepEqual(errors, [])
    }
  })

  it('can be used with the keyboard', async () => {
    const { page } = await open(browser, peers[0].latest.http as string, { viewport: DESKTOP, reducedMotion: 'reduce' })
    await shown('all peers', async () => (await page.locator('#tree .node').count()) === 3)
    await page.keyboard.press('Tab')
    assert.equal(await page.evaluate('document.activeElement.textContent'), 'Skip to the table of peers')
    await page.keyboard.press('Tab')
    const focused = () => page.evaluate('document.activeElement.getAttribute("aria-label")') as Promise<string>
    assert.match(await focused(), /^peer 1, this peer, predictor [A-Z] with/)
    await page.keyboard.press('ArrowRight')
    const next = (await focused()).split(',')[0]
    assert.match(next, /^peer [23]$/)
    await page.keyboard.press('Enter')
    await shown('the node is selected', async () => (await node(page, next).getAttribute('aria-pressed')) === 'true')
    await shown(
      'the row is selected',
      async () => (await page.locator('tr.chosen').textContent())?.includes(next) ?? false
    )
  })

  it('shows that the connection is lost, and reconnects when the peer is back', async () => {
    const http = (peers[2].latest.http as string).replace('http://', '')
    const { page } = await open(browser, `http://${http}/`, { viewport: DESKTOP })
    const state = () => page.locator('#connection').getAttribute('data-state')
    await shown('live', async () => (await state()) === 'live')
    await peers[2].stop()
    await shown('broken', async () => (await state()) === 'broken')
    assert.match((await page.locator('#connection').textContent()) ?? '', /retrying in \d+ s/)
    await shot(page, 'broken')
    await processes.start('--dimension', '4', '--http', http, '--name', 'another').ready()
    await shown('live again', async () => (await state()) === 'live')
    await shown('the new peer', async () => (await page.locator('#peers tbody tr').count()) === 1)
  })
  it('asks for a token with the role that it needs, over HTTPS', async function () {
    const folder = await processes.scratch()
    const files = makeCertificate(folder)
    if (files === undefined) this.skip()
    const tokens = { read: generateToken('read'), learn: generateToken('learn') }
    const options = ['--dimension', '4', '--http', `cert=${files.cert},key=${files.key}`]
    for (const [role, token] of Object.entries(tokens)) {
      const file = join(folder, `${role}.token`)
      writeFileSync(file, token)
      options.push('--http-token-file', file)
    }
    const { latest } = await processes.start(...options).ready()
    const { page } = await open(browser, `${latest.http}/#token=${tokens.learn}`, { ignoreHTTPSErrors: true })
    const state = () => page.locator('#connection').getAttribute('data-state')
    await shown('the form', () => page.locator('#token-form').isVisible())
    assert.equal(await page.locator('a:visible').count(), 0)
    assert.match((await page.locator('#connection').textContent()) ?? '', /has the role learn.*needs read or admin/)
    assert.match((await page.locator('#token-form').textContent()) ?? '', /with the role read/)
    assert.deepEqual(await seriousProblems(page), [])
    await page.locator('#token').fill(tokens.read)
    await page.keyboard.press('Enter')
    await shown('live', async () => (await state()) === 'live')
    await shown('the peer', async () => (await page.locator('#peers tbody tr').count()) === 1)
    // Links cannot carry the token.
    assert.deepEqual(await page.locator('#links a:visible').allTextContents(), ['Simulator'])
  })

  it('shows a peer that is alone how others join it, until one has', async () => {
    const lone = await processes.start('--data', 'digits', '--shard', '1/2', '--rate', '50', '--join-page').ready()
    const { page } = await open(browser, lone.latest.http as string, { viewport: PHONE })
    await shown('the command', () => page.locator('#join-command').isVisible())
    const command = (await page.locator('#join-command').textContent()) ?? ''
    const [, address] = /^npx admb peer --data digits --peer (\S+)$/.exec(command) ?? []
    assert.ok(lone.latest.addresses.includes(address), command)
    assert.match((await page.locator('#alone').innerText()) ?? '', /peers on other machines cannot reach it/)
    assert.deepEqual(await seriousProblems(page), [])
    await shot(page, 'alone')
    await page.locator('#join-link a').click()
    await shown('the join page', async () => /\/join$/.test(page.url()))
    await page.goBack()
    await processes.start('--data', 'digits', '--shard', '2/2', '--rate', '50', '--peer', address).ready()
    await shown('two peers', async () => (await page.locator('#peers tbody tr').count()) === 2)
    await shown('no command', () => page.locator('#alone').isHidden())
    const closed = await processes.start('--dimension', '4').ready()
    await page.goto(closed.latest.http as string)
    await shown('the command', () => page.locator('#join-command').isVisible())
    assert.equal(await page.locator('#join-link').isVisible(), false)
  })
})
