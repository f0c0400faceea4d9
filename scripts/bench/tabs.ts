/**
 * Tabs of browsers that come and go: each learns digits for a while and is then closed, and another one opens. Their loss relative to
 * one learner with the same inputs in the same order, and the time until their tree is whole: after the last change, and after all
 * peers under Node.js are killed. `TABS`, `TABS_LIFE`, `TABS_SECONDS` and `TABS_RATE` change the scale.
 */
import { writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Browser, Page } from 'playwright-core'
import { imageRow } from '../../src/page/join/rows.js'
import type { PeerStatus } from '../../src/peer/index.js'
import { findChromium, launch } from '../../test/support/browser.js'
import { host } from '../../test/support/static-host.js'
import { PeerProcess, runAdmb } from './processes.js'
import { median, type Row } from './row.js'

const TABS = Number(process.env.TABS ?? 50)
/** Mean life of a tab, in seconds; the lives have an exponential distribution. */
const LIFE_S = Number(process.env.TABS_LIFE ?? 60)
const CHURN_S = Number(process.env.TABS_SECONDS ?? 180)
/** Inputs per second of each tab. */
const RATE = Number(process.env.TABS_RATE ?? 2)
const PEERS = 5
const BROWSERS = 2
const BATCH = 64
const PIXELS = 28 * 28
const POLL_MS = 1000
const LIMIT_S = 60
const REST_S = 15

/** The page of a tab: the library, and a peer that joins with the offer. */
const PAGE = `<link rel="icon" href="data:," /><script type="module">
import { joinNetwork } from '/index.js'
globalThis.enter = async offer => { globalThis.peer = await joinNetwork(offer) }
globalThis.learn = text => peer.request({ action: 'learn', format: 'libsvm', body: new TextEncoder().encode(text) })
</script>`

export async function* bench(): AsyncGenerator<Row> {
  const executable = findChromium()
  if (executable === undefined) return void process.stderr.write('bench: no Chromium found: skipped\n')
  const site = await host('dist/browser', '/', () => PAGE)
  const url = `http://127.0.0.1:${(site.address() as AddressInfo).port}`
  const folder = await mkdtemp(join(tmpdir(), 'admb-bench-'))
  const args = ['--data', 'digits', '--limit', '1', '--batch', `${BATCH}`, '--join-page']
  const first = await PeerProcess.start(args)
  const more = Array.from({ length: PEERS - 1 }, () => PeerProcess.start([...args, '--peer', first.address]))
  const peers = [first, ...(await Promise.all(more))]
  const browsers = await Promise.all(Array.from({ length: BROWSERS }, () => launch(executable)))
  try {
    const crowd = new Crowd(browsers, url, peers, await first.fetch('/digits'))
    yield* play(crowd, peers, join(folder, 'learned.libsvm'))
  } finally {
    await Promise.all(browsers.map(browser => browser.close()))
    await Promise.all(peers.map(peer => peer.stop()))
    site.close()
    await rm(folder, { recursive: true })
  }
}

async function* play(crowd: Crowd, peers: readonly PeerProcess[], file: string): AsyncGenerator<Row> {
  await crowd.fill()
  const start = performance.now()
  const linked: number[] = []
  while (performance.now() - start < CHURN_S * 1000) {
    await Promise.all([crowd.churn(), sleep(POLL_MS)])
    linked.push(await crowd.linkedShare())
  }
  await crowd.settle()
  const whole = await until(async () =>
    isWhole([...(await crowd.statuses()), ...(await Promise.all(peers.map(one => one.status())))])
  )
  // The youngest tabs need other tabs to connect to before their relays are gone.
  await sleep(REST_S * 1000)
  await Promise.all(peers.map(peer => peer.kill()))
  const alone = await until(async () => isWhole(await crowd.statuses()))
  await crowd.close()
  const { inputs, loss, lines, opened, joining } = crowd
  writeFileSync(file, `${lines.join('\n')}\n`)
  const train = ['train', '--data', file, '--dimension', `${PIXELS}`, '--classes', '10', '--batch', `${BATCH}`]
  const { averageLoss } = await runAdmb<{ averageLoss: number }>(train)
  const name = `${TABS} tabs that live ${LIFE_S} s on average, ${PEERS} peers`
  const share = linked.reduce((sum, one) => sum + one, 0) / linked.length
  const details = { tabs: opened, inputs, serial: averageLoss, 'share of tabs with a neighbour': share }
  yield {
    name: `${name}: loss over serial`,
    value: loss / inputs / averageLoss,
    unit: '×',
    target: { most: 1.05 },
    details
  }
  yield { name: `${name}: from opening a tab to its first update, median`, value: median(joining), unit: 's' }
  yield { name: `${name}: tree whole after the last change`, value: whole, unit: 's' }
  yield {
    name: `${name}: tree of the tabs whole after all peers are killed, ${REST_S} s later`,
    value: alone,
    unit: 's'
  }
}

/** Seconds until the condition is true; Infinity if it is not within the limit. */
async function until(condition: () => Promise<boolean>): Promise<number> {
  const start = performance.now()
  const seconds = () => (performance.now() - start) / 1000
  while (!(await condition())) {
    if (seconds() > LIMIT_S) return Number.POSITIVE_INFINITY
    await sleep(POLL_MS / 10)
  }
  return seconds()
}

/** Whether all peers form one tree. */
function isWhole(statuses: readonly Pick<PeerStatus, 'id' | 'neighbours'>[]): boolean {
  const neighboursOf = new Map(statuses.map(({ id, neighbours }) => [id, neighbours]))
  const reached = new Set([statuses[0].id])
  for (const id of reached)
    for (const other of neighboursOf.get(id) ?? []) if (neighboursOf.has(other)) reached.add(other)
  return reached.size === statuses.length
}

interface Tab {
  readonly page: Page
  readonly openedAt: number
  readonly dies: number
  /** When it was last given inputs. */
  fedAt: number
  isReady: boolean
}

/** Tabs that are open, and what those that were have learned. */
class Crowd {
  /** The inputs that were learned, in this order. */
  readonly lines: string[] = []
  /** Of the tabs that were closed. */
  inputs = 0
  loss = 0
  opened = 0
  /** Seconds that each tab took to join. */
  readonly joining: number[] = []
  readonly #browsers: readonly Browser[]
  readonly #url: string
  readonly #peers: readonly PeerProcess[]
  readonly #digits: Uint8Array
  readonly #tabs = new Set<Tab>()
  #next = 0

  /** @param digits answer to `GET /digits` */
  constructor(browsers: readonly Browser[], url: string, peers: readonly PeerProcess[], digits: Uint8Array) {
    this.#browsers = browsers
    this.#url = url
    this.#peers = peers
    this.#digits = digits
  }

  async fill(): Promise<void> {
    while (this.#tabs.size < TABS) await this.#open()
  }

  /** Closes tabs whose lifetime has ended, opens new ones, and sends inputs to all. */
  async churn(): Promise<void> {
    const now = performance.now()
    const dying = [...this.#tabs].filter(({ dies }) => dies < now)
    await Promise.all(dying.map(tab => this.#close(tab)))
    await this.fill()
    await Promise.all([...this.#tabs].map(tab => this.#feed(tab)))
  }

  /** Waits until the youngest tabs have joined. */
  async settle(): Promise<void> {
    await until(async () => (await this.linkedShare()) === 1)
  }

  async close(): Promise<void> {
    await Promise.all([...this.#tabs].map(tab => this.#close(tab)))
  }

  statuses(): Promise<PeerStatus[]> {
    return Promise.all([...this.#tabs].map(statusOf))
  }

  async linkedShare(): Promise<number> {
    const statuses = await this.statuses()
    return statuses.filter(({ neighbours }) => neighbours.length > 0).length / statuses.length
  }

  async #open(): Promise<void> {
    const openedAt = performance.now()
    const page = await (await this.#browsers[this.opened % BROWSERS].newContext()).newPage()
    await page.goto(this.#url)
    await page.waitForFunction('globalThis.enter !== undefined')
    const offer = await this.#peers[this.opened++ % PEERS].fetchText('/join.json')
    await page.evaluate(`enter(${offer})`)
    const life = -Math.log(1 - Math.random()) * LIFE_S * 1000
    this.#tabs.add({ page, openedAt, dies: performance.now() + life, fedAt: 0, isReady: false })
  }

  /** A tab learns from the time at which it follows the predictor of the network. */
  async #feed(tab: Tab): Promise<void> {
    const now = performance.now()
    if (!tab.isReady) {
      const { neighbours, updates } = await statusOf(tab)
      tab.isReady = neighbours.length > 0 && (updates > 0 || this.lines.length < BATCH)
      tab.fedAt = now
      if (tab.isReady) this.joining.push((now - tab.openedAt) / 1000)
      return
    }
    const count = Math.floor(((now - tab.fedAt) / 1000) * RATE)
    if (count === 0) return
    tab.fedAt += (count / RATE) * 1000
    const lines = Array.from({ length: count }, () => this.#line())
    await tab.page.evaluate(`learn(${JSON.stringify(`${lines.join('\n')}\n`)}).then(() => undefined)`)
    this.lines.push(...lines)
  }

  #line(): string {
    const count = this.#digits.length / (1 + PIXELS)
    // 3,571 is prime, so each digit is used once before any is repeated.
    const digit = (this.#next++ * 3571) % count
    return imageRow(this.#digits.subarray(count + digit * PIXELS, count + (digit + 1) * PIXELS), this.#digits[digit])
  }

  /** The page is closed without a goodbye of its peer. */
  async #close(tab: Tab): Promise<void> {
    this.#tabs.delete(tab)
    const { inputs, averageLoss } = await statusOf(tab)
    this.inputs += inputs
    this.loss += inputs * averageLoss
    await tab.page.context().close()
  }
}

async function statusOf({ page }: Pick<Tab, 'page'>): Promise<PeerStatus> {
  return (await page.evaluate('peer.status()')) as PeerStatus
}
