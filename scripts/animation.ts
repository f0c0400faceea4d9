/**
 * Writes the animation of the README, `docs/images/demo.svg`, from a run of `admb demo`: the tree of the five peers, in one
 * colour per predictor, and their loss. Run `npm run animation` after changes of the demo, watch the result in a browser before
 * committing it, and quote its output in the README.
 */
import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import type { NetworkSnapshot, Reference } from '../src/view/index.js'

const FILE = 'docs/images/demo.svg'
const POLL_MS = 100
/** Seconds of the run in one second of the animation. */
const SPEED = 2
/** The last frame is shown for this long, in seconds of the animation. */
const PAUSE_S = 4
const PEERS = 5
const COLOURS = ['#3b6fd4', '#e07b28', '#2f9e6e', '#a04fc0', '#c0392b']
const DOWN = '#c8ccd2'
/** The plot's corners and ranges. */
const PLOT = { left: 430, right: 800, top: 40, bottom: 262, most: 1.6 }

interface Frame {
  /** Milliseconds since the streams began. */
  readonly at: number
  readonly caption: string
  /** Colour of each peer. */
  readonly colours: readonly string[]
  /** Edges of the tree, such as `0-3`, from the lower to the higher peer. */
  readonly edges: ReadonlySet<string>
  /** Inputs per peer, and the mean loss over all inputs. */
  readonly inputs: number
  readonly loss: number
}

const { frames, references } = await record()
const drawing = draw(frames, references)
writeFileSync(FILE, drawing)
console.log(`wrote ${FILE}: ${frames.length} frames, ${Math.round(drawing.length / 1000)} kB`)

/** Runs the demo, and reads the state of its network several times a second. */
async function record(): Promise<{ frames: Frame[]; references: readonly Reference[] }> {
  const demo = spawn(process.execPath, ['dist/program/admb.js', 'demo', '--http', '0'], {
    stdio: ['ignore', 'pipe', 'inherit']
  })
  const frames: Frame[] = []
  const down = new Set<number>()
  const colourOf = colours()
  let references: readonly Reference[] = []
  let caption = ''
  let url: string | undefined
  let start = 0
  let ended = false
  const polling = (async () => {
    while (!ended) {
      await new Promise(resolve => setTimeout(resolve, POLL_MS))
      if (url === undefined || start === 0) continue
      const snapshot = await fetch(`${url}/peers`).then(
        response => response.json() as Promise<NetworkSnapshot>,
        () => undefined
      )
      if (snapshot === undefined || ended) continue
      frames.push(frameOf(snapshot, { at: performance.now() - start, caption, down, colourOf }))
    }
  })()
  for await (const line of createInterface({ input: demo.stdout })) {
    // The README quotes these lines.
    console.log(line)
    url ??= /^watch it at (\S+)/.exec(line)?.[1]
    const [, event] = /^[\d.]+ s {2}(.+)$/.exec(line) ?? []
    if (event === undefined) continue
    const [, peer, verb] = /^peer (\d) (was killed|restarted)/.exec(event) ?? []
    if (verb === 'was killed') down.add(Number(peer) - 1)
    if (verb === 'restarted') down.delete(Number(peer) - 1)
    const isBeginning = event.startsWith('the five peers are linked')
    if (isBeginning) start = performance.now()
    caption = isBeginning ? 'five peers learn one predictor together' : event
    if (event.startsWith('the partition has healed')) references = await referencesAt(`${url}/events`)
    if (!event.startsWith('all five')) continue
    ended = true
    frames.push({ ...frames[frames.length - 1], at: performance.now() - start, caption })
  }
  await polling
  return { frames, references }
}

/** Reads the first server-sent event, a snapshot. */
async function referencesAt(url: string): Promise<readonly Reference[]> {
  const stop = new AbortController()
  const { body } = await fetch(url, { signal: stop.signal })
  let text = ''
  for await (const chunk of body as ReadableStream<Uint8Array>) {
    text += new TextDecoder().decode(chunk)
    if (text.includes('\n\n')) break
  }
  stop.abort()
  const [, data] = /^data: (.+)$/m.exec(text) ?? []
  return (JSON.parse(data) as NetworkSnapshot).references
}

/** A colour for each group of peers with one predictor. A group without peers returns its colour. */
function colours(): (groups: readonly number[]) => string[] {
  const held = new Map<number, string>()
  return groups => {
    for (const group of held.keys()) if (!groups.includes(group)) held.delete(group)
    for (const group of groups) {
      if (!held.has(group)) held.set(group, COLOURS.find(colour => ![...held.values()].includes(colour)) ?? DOWN)
    }
    return groups.map(group => held.get(group) ?? DOWN)
  }
}

function frameOf(
  { peers }: NetworkSnapshot,
  run: {
    readonly at: number
    readonly caption: string
    readonly down: ReadonlySet<number>
    readonly colourOf: (groups: readonly number[]) => string[]
  }
): Frame {
  const place = new Map(peers.map(({ id, name }) => [id, Number(name?.replace('peer ', '')) - 1]))
  const sorted = Array.from({ length: PEERS }, (_, peer) => peers.find(({ id }) => place.get(id) === peer))
  const edges = new Set<string>()
  for (const [from, peer] of sorted.entries()) {
    for (const id of peer?.neighbours ?? []) {
      const to = place.get(id)
      if (peer === undefined || to === undefined || run.down.has(from) || run.down.has(to)) continue
      // An edge exists if both ends report it.
      if (sorted[to]?.neighbours.includes(peer.id) && from < to) edges.add(`${from}-${to}`)
    }
  }
  const groups = run.colourOf(peers.map(({ group }) => group))
  const colourOf = new Map(peers.map(({ id }, i) => [id, groups[i]]))
  const sum = (of: readonly number[]) => of.reduce((total, value) => total + value, 0)
  const inputs = sum(peers.map(peer => peer.inputs))
  return {
    at: run.at,
    caption: run.caption,
    colours: sorted.map((peer, i) => (run.down.has(i) ? DOWN : (colourOf.get(peer?.id ?? '') ?? DOWN))),
    edges,
    inputs: inputs / PEERS,
    loss: sum(peers.map(peer => (peer.loss ?? 0) * peer.inputs)) / inputs
  }
}

function draw(frames: readonly Frame[], references: readonly Reference[]): string {
  const seconds = frames[frames.length - 1].at / 1000 / SPEED + PAUSE_S
  const percent = ({ at }: Frame) => `${((at / 1000 / SPEED / seconds) * 100).toFixed(2)}%`
  const styles: string[] = []
  /** Adds the changes of one property over the run; returns the class of the element. */
  const animated = (name: string, of: (frame: Frame) => string, timing = 'step-end'): string => {
    const kept = frames.filter((frame, i) => i === 0 || of(frame) !== of(frames[i - 1]))
    const steps = kept.map((frame, i) => `${i === 0 ? '0%' : percent(frame)}{${of(frame)}}`)
    styles.push(`@keyframes ${name}{${steps.join('')}100%{${of(frames[frames.length - 1])}}}`)
    styles.push(
      `.${name}{${of(frames[frames.length - 1])};animation:${name} ${seconds.toFixed(1)}s ${timing} infinite}`
    )
    return name
  }
  const nodes = Array.from({ length: PEERS }, (_, peer) => {
    const angle = ((peer - 1.5) / PEERS) * 2 * Math.PI
    return { x: Math.round(210 + 130 * Math.cos(angle)), y: Math.round(158 + 105 * Math.sin(angle)) }
  })
  const edges = [...new Set(frames.flatMap(frame => [...frame.edges]))].map(edge => {
    const [from, to] = edge.split('-').map(peer => nodes[Number(peer)])
    const name = animated(`e${edge}`, frame => `opacity:${frame.edges.has(edge) ? 1 : 0}`)
    return `<line class="edge ${name}" x1="${from.x}" y1="${from.y}" x2="${to.x}" y2="${to.y}"/>`
  })
  const circles = nodes.map(({ x, y }, peer) => {
    const name = animated(`p${peer}`, frame => `fill:${frame.colours[peer]}`)
    return `<circle class="${name}" cx="${x}" cy="${y}" r="24"/><text class="peer" x="${x}" y="${y + 6}">${peer + 1}</text>`
  })
  const captions = [...new Set(frames.map(({ caption }) => caption))].map((caption, i) => {
    const name = animated(`c${i}`, frame => `opacity:${frame.caption === caption ? 1 : 0}`)
    return `<text class="caption ${name}" x="420" y="312">${caption}</text>`
  })
  const most = Math.max(...frames.map(({ inputs }) => inputs))
  const x = (inputs: number) => PLOT.left + (inputs / most) * (PLOT.right - PLOT.left)
  const y = (loss: number) => PLOT.bottom - (Math.min(loss, PLOT.most) / PLOT.most) * (PLOT.bottom - PLOT.top)
  const line = (points: readonly (readonly [inputs: number, loss: number])[], rest: string) =>
    `<polyline ${rest} points="${points.map(([inputs, loss]) => `${x(inputs).toFixed(1)},${y(loss).toFixed(1)}`).join(' ')}"/>`
  const thinned = frames.filter(({ loss }, i) => Number.isFinite(loss) && i % 3 === 0)
  const reveal = animated('reveal', frame => `transform:scaleX(${(frame.inputs / most).toFixed(3)})`, 'linear')
  const labels = { serial: 'one learner, all inputs', isolated: 'five learners, each alone' }
  const curves = references.map(({ name, points }) => {
    const [, last] = points[points.length - 1]
    const at = y(last) + (name === 'serial' ? 20 : -34)
    return `${line(points, `class="curve ${name}"`)}<text class="label" x="${PLOT.right}" y="${at.toFixed(0)}">${labels[name]}</text>`
  })
  const ticks = [0.5, 1, 1.5].map(
    loss => `<text class="tick" x="${PLOT.left - 8}" y="${(y(loss) + 4).toFixed(0)}">${loss.toFixed(1)}</text>`
  )
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 840 336" role="img" aria-labelledby="title">
<title id="title">A run of the demo: a peer is killed and restarts, the network splits into two trees and heals</title>
<style>
text{font:14px system-ui,sans-serif;fill:#2b3036}.peer{fill:#fff;font-weight:600;text-anchor:middle;font-size:17px}
.caption{font-size:16px;text-anchor:middle}.edge{stroke:#7a828c;stroke-width:3}.axis{stroke:#7a828c;fill:none}
.curve{fill:none;stroke-width:2}.serial{stroke:#7a828c;stroke-dasharray:6 4}.isolated{stroke:#7a828c;stroke-dasharray:2 4}
.label,.tick{text-anchor:end;font-size:12px;fill:#5b626b}.${reveal}{transform-origin:${PLOT.left}px 0}
${styles.join('\n')}
@media (prefers-reduced-motion:reduce){*{animation:none!important}}
</style>
<rect width="840" height="336" rx="8" fill="#fff"/>
<clipPath id="clip"><rect class="${reveal}" x="${PLOT.left}" y="0" width="${PLOT.right - PLOT.left}" height="300"/></clipPath>
${[...edges, ...circles, ...captions].join('\n')}
<path class="axis" d="M${PLOT.left} ${PLOT.top}V${PLOT.bottom}H${PLOT.right}"/>
${[...ticks, ...curves].join('\n')}
${line(
  thinned.map(({ inputs, loss }) => [inputs, loss]),
  `class="curve" stroke="${COLOURS[0]}" style="stroke-width:3" clip-path="url(#clip)"`
)}
<text x="${PLOT.left}" y="28">progressive loss of the five peers, against inputs</text>
</svg>
`
}
