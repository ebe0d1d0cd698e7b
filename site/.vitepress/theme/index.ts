import type { Theme } from 'vitepress'
import DefaultTheme from 'vitepress/theme-without-fonts'
import { defineAsyncComponent } from 'vue'
import SiteHome from './SiteHome.vue'
import './colors.css'
import './home.css'

export default {
  extends: DefaultTheme,
  enhanceApp({ app }) {
    app.component('SiteHome', SiteHome)
    app.component(
      'SitePlayground',
      defineAsyncComponent(() => import('./SitePlayground.vue')),
    )
  },
} satisfies Theme
