/**
 * Results of networks on public data, by the command line: an MLP on MNIST, trained by one process and by three peers;
 * a character model on tinyshakespeare under two schedules; small encoders on AG News and MRPC.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { gunzipSync } from 'node:zlib'
import { trainTokenizer } from '../../src/nn/tokenizers/train.js'
import type { PeerStatus } from '../../src/peer/index.js'
import { publicData, shakespeare } from './data.js'
import { PeerProcess, runAdmb } from './processes.js'
import type { Row } from './row.js'

interface Trained {
  readonly averageLoss: number
  readonly seconds: number
  readonly relay: { readonly stepMs: number; readonly devicePeakBytes: number }
}

interface Scored {
  readonly loss: number
  readonly accuracy: number
}

const PEERS = 3
/** Inputs per second of each peer that two cores can process. */
const RATE = 250
const PIECES = 8000

export async function* bench(): AsyncGenerator<Row> {
  const folder = mkdtempSync(join(tmpdir(), 'admb-l2l-data-'))
  try {
    yield* mnist(folder)
    yield* characters(folder)
    yield* news(folder)
    yield* paraphrases(folder)
    yield* peers(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Trains into a new folder and evaluates the model on the test data. */
async function trainAndEval(
  folder: string,
  train: readonly string[],
  test: string
): Promise<Trained & { scored: Scored }> {
  const dir = mkdtempSync(join(folder, 'model-'))
  const trained = await runAdmb<Trained>(['train', '--predict-with', 'current', '--dir', dir, ...train])
  return { ...trained, scored: await runAdmb<Scored>(['eval', '--dir', dir, '--data', test]) }
}

async function* mnist(folder: string): AsyncGenerator<Row> {
  const train = publicData('mnist/train-images-idx3-ubyte.gz')
  const test = publicData('mnist/t10k-images-idx3-ubyte.gz')
  if (train === undefined || test === undefined) return
  const args = ['--model', 'mlp', '--data', train, '--passes', '3', '--batch', '32', '--shuffle-window', '10000']
  const { scored, seconds } = await trainAndEval(folder, args, test)
  const details = { loss: scored.loss, seconds }
  yield { name: 'MNIST, mlp, three passes', value: 100 * scored.accuracy, unit: '%', target: { least: 97.5 }, details }
}

async function* characters(folder: string): AsyncGenerator<Row> {
  const text = shakespeare()
  if (text === undefined) return
  const cut = Math.floor(0.9 * text.length)
  const [train, test] = [join(folder, 'train.txt'), join(folder, 'test.txt')]
  writeFileSync(train, text.slice(0, cut))
  writeFileSync(test, text.slice(cut, cut + 40_000))
  const model = modelFile(folder, 'characters', { model: 'gpt', width: 64, layers: 2, heads: 4 })
  const args = ['--model', model, '--data', train, '--rule', 'adam,step=0.003', '--batch', '16', '--limit', '6400']
  const baseline = await trainAndEval(folder, [...args, '--schedule', 'baseline'], test)
  const layerwise = await trainAndEval(
    folder,
    [...args, '--schedule', 'l2l-p', '--microbatch', '4', '--stash', 'host'],
    test
  )
  const bytes = (of: Trained) => of.relay.devicePeakBytes / 2 ** 20
  const details = { baseline: baseline.scored.loss, baselineMB: bytes(baseline), layerwiseMB: bytes(layerwise) }
  yield { name: 'tinyshakespeare, gpt: validation loss', value: layerwise.scored.loss, unit: 'nats', details }
  const off = 100 * Math.abs(layerwise.scored.loss / baseline.scored.loss - 1)
  yield { name: 'tinyshakespeare, gpt: l2l-p compared with baseline', value: off, unit: '% off', target: { most: 1 } }
}

interface Text {
  readonly label: string
  readonly text: string
}

async function* news(folder: string): AsyncGenerator<Row> {
  const path = publicData('ag_news_test.csv.gz')
  if (path === undefined) return
  const rows = lines(path).map((line): Text => {
    const [label, title, description] = line.slice(1, -1).split('","')
    return { label, text: `${title} . ${description}` }
  })
  // Every 7.6th row is a test row.
  const isTest = (_: unknown, i: number) => Math.floor((i + 1) / 7.6) > Math.floor(i / 7.6)
  const [train, test] = [rows.filter((row, i) => !isTest(row, i)), rows.filter(isTest)]
  const { scored, seconds } = await encoder(folder, 'news', train, test, { length: 48, passes: 4 })
  const details = { trained: train.length, tested: test.length, loss: scored.loss, seconds }
  yield { name: 'AG News, encoder', value: 100 * scored.accuracy, unit: '%', target: { least: 80 }, details }
}

async function* paraphrases(folder: string): AsyncGenerator<Row> {
  const paths = ['train', 'test'].map(part => publicData(`msr_paraphrase_${part}.txt.gz`))
  if (paths.includes(undefined)) return
  const [train, test] = paths.map(path =>
    lines(path as string)
      .slice(1)
      .map((line): Text => {
        const [label, , , first, second] = line.split('\t')
        return { label, text: `${first} [SEP] ${second}` }
      })
  )
  const { scored, seconds } = await encoder(folder, 'paraphrases', train, test, { length: 64, passes: 3 })
  const majority = (100 * test.filter(({ label }) => label === '1').length) / test.length
  const details = { majority, loss: scored.loss, seconds }
  yield { name: 'MRPC, encoder from scratch', value: 100 * scored.accuracy, unit: '%', details }
}

function encoder(
  folder: string,
  name: string,
  train: readonly Text[],
  test: readonly Text[],
  { length, passes }: { readonly length: number; readonly passes: number }
) {
  const [trainFile, testFile] = [train, test].map((texts, i) => {
    const file = join(folder, `${name}-${i}.jsonl`)
    writeFileSync(file, texts.map(text => `${JSON.stringify(text)}\n`).join(''))
    return file
  })
  const tokenizer = join(folder, `${name}-tokenizer.json`)
  const texts = train.map(({ text }) => text)
  writeFileSync(tokenizer, JSON.stringify(trainTokenizer(texts, 'wordpiece', PIECES)))
  const model = modelFile(folder, name, { model: 'transformer', width: 64, layers: 1, heads: 4, dropout: 0.1 })
  const args = ['--model', model, '--data', trainFile, '--tokenizer', tokenizer, '--length', `${length}`]
  args.push('--batch', '32', '--passes', `${passes}`, '--shuffle-window', '10000')
  return trainAndEval(folder, args, testFile)
}

/** Two passes over the same inputs, by one learner and by three peers that share them. */
async function* peers(folder: string): AsyncGenerator<Row> {
  const train = publicData('mnist/train-images-idx3-ubyte.gz')
  const test = publicData('mnist/t10k-images-idx3-ubyte.gz')
  if (train === undefined || test === undefined) return
  const task = ['--model', 'mlp', '--data', train, '--passes', '2', '--batch', '256']
  task.push('--rule', 'adam,step=0.003')
  const { scored } = await trainAndEval(folder, task, test)
  const dirs = Array.from({ length: PEERS }, () => mkdtempSync(join(folder, 'peer-')))
  const args = (index: number) => {
    const peerArgs = [
      '--shard',
      `${index + 1}/${PEERS}`,
      '--rate',
      `${RATE}`,
      '--period',
      '50',
      '--dir',
      join(dirs[index], 'state')
    ]
    return [...task, '--predict-with', 'current', ...peerArgs]
  }
  const first = await PeerProcess.start(args(0))
  const rest = dirs.slice(1).map((_, i) => PeerProcess.start([...args(i + 1), '--peer', first.address]))
  const all = [first, ...(await Promise.all(rest))]
  let now: PeerStatus[] = []
  try {
    do {
      await sleep(1000)
      now = await Promise.all(all.map(peer => peer.status()))
    } while (!now.every(({ ended }) => ended))
    await sleep(3000)
    now = await Promise.all(all.map(peer => peer.status()))
  } finally {
    await Promise.all(all.map(peer => peer.stop()))
  }
  const together = await runAdmb<Scored>(['eval', '--dir', join(dirs[0], 'state'), '--data', test])
  const details = {
    serial: 100 * scored.accuracy,
    together: 100 * together.accuracy,
    updates: now.map(({ updates }) => updates),
    discarded: now.map(({ discarded }) => discarded)
  }
  const points = 100 * (scored.accuracy - together.accuracy)
  yield {
    name: 'MNIST, three peers: points below serial',
    value: points,
    unit: 'points',
    target: { most: 0.5 },
    details
  }
}

function modelFile(folder: string, name: string, model: object): string {
  const file = join(folder, `${name}.json`)
  writeFileSync(file, JSON.stringify(model))
  return file
}

function lines(path: string): string[] {
  return gunzipSync(readFileSync(path))
    .toString('utf8')
    .replace(/^\uFEFF/, '')
    .split(/\r?\n/)
    .filter(line => line !== '')
}
