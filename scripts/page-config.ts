/** How Vite builds the pages: one script and one style sheet each, without external content, and without what browsers lack. */
import { fileURLToPath } from 'node:url'
import type { InlineConfig, Plugin } from 'vite'
import { repairs } from '../sim/fuzz/repairs.js'
import { builtInScenarios, loadScenario } from '../sim/library.js'
import { parseScenario } from '../sim/scenario.js'
import { type BuiltIn, CONTROLS } from '../src/page/simulator/controls.js'

const root = fileURLToPath(new URL('../../', import.meta.url))

/** Fails on imports of Node.js's modules, and on its globals in own code, instead of leaving holes in the bundle. */
function browserOnly(): Plugin {
  return {
    name: 'browser-only',
    enforce: 'pre',
    resolveId(source, importer) {
      if (!source.startsWith('node:')) return
      this.error(`${importer} imports ${source}, which browsers do not have; put what needs it behind #platform`)
    },
    transform: {
      // The types and comments are gone by then.
      order: 'post',
      handler(code, id) {
        if (!id.startsWith(root) || id.includes('/node_modules/')) return
        const [use] = /\b(?:Buffer|process)\.\w+/.exec(code) ?? []
        if (use !== undefined)
          this.error(`${id} uses ${use}, which browsers do not have; put what needs it behind #platform`)
      }
    }
  }
}

/** Forbids the pages of a static host, which sends no headers of its own, all content of other hosts. */
export function withPolicy(): Plugin {
  const policy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'"
  return {
    name: 'policy',
    transformIndexHtml: () => [
      { tag: 'meta', attrs: { 'http-equiv': 'Content-Security-Policy', content: policy }, injectTo: 'head-prepend' }
    ]
  }
}

/** The built-in scenarios, which the page cannot read from files, and the values of its controls for them. */
function scenarios(): BuiltIn[] {
  return builtInScenarios().map(({ name, about }) => {
    const { values } = loadScenario(name)
    const scenario = parseScenario(values, name)
    const settings = CONTROLS.map(({ key }) => key.split('.').reduce<unknown>(inner, scenario) as number)
    return { name, about, values, settings }
  })
}

function inner(value: unknown, key: string): unknown {
  return (value as Readonly<Record<string, unknown>>)[key]
}

/** @param pages the HTML files below `src/page` @param outDir folder below the root of the repository */
export function pageConfig(pages: readonly string[], outDir: string): InlineConfig {
  return {
    configFile: false,
    root: `${root}src/page`,
    // Relative, so that the page works under any path.
    base: './',
    logLevel: 'warn',
    plugins: [browserOnly()],
    define: {
      BUILT_IN_SCENARIOS: JSON.stringify(scenarios()),
      REPAIRS: JSON.stringify(Object.entries(repairs).map(([name, { title, help }]) => ({ name, title, help })))
    },
    worker: { format: 'es', plugins: () => [browserOnly()] },
    build: {
      outDir: `${root}${outDir}`,
      emptyOutDir: true,
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      target: 'es2022',
      rolldownOptions: { input: pages.map(page => `${root}src/page/${page}`) }
    }
  }
}
