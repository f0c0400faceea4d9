/** Finds and starts Chromium for the end-to-end tests. */
import { accessSync, constants } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { delimiter, join } from 'node:path'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'

const NAMES = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome']

/** `ADMB_CHROMIUM`, or the first Chromium on the PATH; undefined if there is none. */
export function findChromium(): string | undefined {
  const folders = (process.env.PATH ?? '').split(delimiter)
  const given = process.env.ADMB_CHROMIUM
  const candidates = given ? [given] : NAMES.flatMap(name => folders.map(folder => join(folder, name)))
  return candidates.find(isExecutable)
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** Starts Chromium; undefined, with a word, if there is none, so that the tests are skipped. */
export async function launchIfFound(): Promise<Browser | undefined> {
  const executablePath = findChromium()
  if (executablePath !== undefined) return launch(executablePath)
  console.log('    skipped: no Chromium found (apt-get install chromium, or set ADMB_CHROMIUM to its path)')
  return undefined
}

export function launch(executablePath: string): Promise<Browser> {
  // Chromium's sandbox does not work for root, which is the user in containers.
  const args = process.getuid?.() === 0 ? ['--no-sandbox'] : []
  return chromium.launch({ executablePath, args })
}

export interface OpenedPage {
  readonly page: Page
  /** Errors and warnings on the page's console, including CSP violations. */
  readonly errors: string[]
}

/** @param script runs before those of the page */
export async function open(
  browser: Browser,
  url: string,
  options: BrowserContextOptions = {},
  script?: string
): Promise<OpenedPage> {
  const context = await browser.newContext(options)
  if (script !== undefined) await context.addInitScript(script)
  const page = await context.newPage()
  const errors: string[] = []
  page.on('pageerror', error => errors.push(String(error)))
  page.on('console', message => {
    if (message.type() === 'error' || message.type() === 'warning') errors.push(message.text())
  })
  await page.goto(url)
  return { page, errors }
}

interface Violation {
  readonly id: string
  readonly impact: string
  readonly help: string
  readonly nodes: readonly { readonly html: string }[]
}

/** The serious and critical problems found by axe, one line each. */
export async function seriousProblems(page: Page): Promise<string[]> {
  const file = createRequire(import.meta.url).resolve('axe-core/axe.min.js')
  await page.evaluate(await readFile(file, 'utf8'))
  const { violations } = (await page.evaluate('axe.run()')) as { violations: readonly Violation[] }
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, help, nodes }) => `${id}: ${help}: ${nodes[0].html}`)
}
